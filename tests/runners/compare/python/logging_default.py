import logging

logging.warning("a warning")
logging.info("not shown")
logging.getLogger("name").error("an error")
print(logging.root.handlers, logging.root.level, "name" in logging.root.manager.loggerDict)

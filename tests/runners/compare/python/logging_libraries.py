# ways: preloaded preloading
import logging

logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
logging.warning("with basicConfig")
print(len(logging.root.handlers), logging.root.level)

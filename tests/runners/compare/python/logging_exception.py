import logging
import sys

logging.basicConfig(stream=sys.stdout, format="%(levelname)s:%(funcName)s:%(lineno)d:%(threadName)s:%(processName)s:%(message)s")
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("it failed")
logging.getLogger().handlers[0].close()

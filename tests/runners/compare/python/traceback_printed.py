import sys
import traceback

try:
    int("x")
except ValueError:
    traceback.print_exc(file=sys.stdout)
    print(traceback.format_exc(limit=1))
    print(traceback.extract_tb(sys.exc_info()[2]))

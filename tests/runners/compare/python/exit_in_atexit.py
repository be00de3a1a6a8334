# differs: 0x[0-9a-f]+
import atexit
import sys


def leave():
    print("leaving")
    sys.exit(3)


atexit.register(leave)

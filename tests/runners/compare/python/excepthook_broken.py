import sys


def hook(*args):
    raise TypeError("the hook itself")


sys.excepthook = hook
raise ValueError("x")

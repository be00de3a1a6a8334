# ways: started preloading
import os

os.unlink(__file__)


def f():
    raise ValueError("the source is gone")


f()

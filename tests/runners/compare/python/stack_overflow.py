# ways: started preloaded
import functools
import sys

sys.setrecursionlimit(10 ** 8)


class Deep:
    def __repr__(self):
        return repr(self)


print("begun", flush=True)
repr(Deep())

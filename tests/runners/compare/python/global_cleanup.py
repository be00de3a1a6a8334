# ways: started preloaded
import os
import sys


class Last:
    def __init__(self, n):
        self.n = n

    def __del__(self, write=os.write, sys=sys):
        write(1, f"deleted {self.n} {sys.is_finalizing()} {sys.stdout is None}\n".encode())


sys.modules["kept_one"] = Last(1)
sys.kept_two = Last(2)
_private = Last(3)
public = Last(4)
os.kept_five = Last(5)

# ways: all
import sys


class Last:
    def __del__(self):
        sys.stdout.write(f"deleted {self.n} {sys.is_finalizing()}\n")

    def __init__(self, n):
        self.n = n


sys.modules["kept_one"] = Last(1)
sys.kept_two = Last(2)
_private = Last(3)
public = Last(4)

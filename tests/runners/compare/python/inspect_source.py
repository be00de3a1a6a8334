# ways: started preloading
import inspect
import sys


def f(a, b=2, *args, c: int = 3, **kw) -> str:
    """Doc of f."""
    return "text"


class C:
    """Doc of C."""

    def m(self):
        return 1


print(inspect.getsource(f), inspect.getsource(C), inspect.getsourcefile(f), inspect.getfile(C))
print(inspect.signature(f), inspect.getdoc(f), inspect.getmodule(f), inspect.getsourcelines(C.m))
print(inspect.getmodule(inspect.currentframe()) is sys.modules["__main__"])

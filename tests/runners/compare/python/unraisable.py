import sys

sys.unraisablehook = lambda u: print("unraisable", u.exc_type.__name__, u.exc_value)


class Thing:
    def __del__(self):
        raise ValueError("in del")


Thing()
print("end")

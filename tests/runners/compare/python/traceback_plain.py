# ways: all
def outer(n):
    inner(n)


def inner(n):
    raise ValueError(f"bad {n}")


outer(5)

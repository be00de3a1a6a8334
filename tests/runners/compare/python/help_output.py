def f(x: int) -> str:
    """What f does."""


help(f)
import math

help(math.sqrt)

"""
>>> double(2)
4
>>> double("a")
'ab'
"""
import doctest


def double(x):
    return x * 2


print(doctest.testmod())

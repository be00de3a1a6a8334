# ways: started preloaded
# A module that only a preload brought in: what a program does not import is still not there for it by its name.
import numpy

try:
    print(pandas)
except NameError as e:
    print(e)
try:
    import matplotlib

    matplotlib.no_such_part
except AttributeError as e:
    print(e)
print(numpy.__name__, "numpy" in dir(), "pandas" in globals())

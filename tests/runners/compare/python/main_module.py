import __main__
import sys

value = 5
print(__main__.value, sys.modules["__main__"] is __main__, __main__.__file__)
print(__main__.__loader__.get_filename(), __main__.__loader__.path, repr(__main__))

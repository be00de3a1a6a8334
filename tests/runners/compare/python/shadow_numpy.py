# file: numpy.py
#| print("my own numpy", __name__)
#| value = 5
# ways: all
# new: preloaded
import numpy

print(numpy.value, numpy.__file__)

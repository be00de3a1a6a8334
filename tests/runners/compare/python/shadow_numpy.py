# file: numpy.py
#| print("my own numpy", __name__)
#| value = 5
# ways: all
# anew: full
import numpy

print(numpy.value, numpy.__file__)

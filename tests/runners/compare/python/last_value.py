# ways: all
# optional: ^\[1, 4, 9\]\n
import sys, traceback

squares = [n * n for n in (1, 2, 3)]
print(len(squares), sys._getframe().f_back, sys._getframe().f_lineno, __loader__.get_source("__main__").count("\n"))
try:
    (squares
     + 1)
except TypeError:
    traceback.print_exc()
squares

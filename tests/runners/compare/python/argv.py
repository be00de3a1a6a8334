# args: one "two words" "" --flag -x é
# ways: all
import sys

print(sys.argv, sys.orig_argv)
print(repr(__name__), __file__, __spec__, __package__, __doc__, type(__loader__).__name__)

import sys

open("/tmp/neighbour.py", "w").write("name = __name__ + ' in ' + __file__")
import neighbour

print(neighbour.name, sys.path[0])

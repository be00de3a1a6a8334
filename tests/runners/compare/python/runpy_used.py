# file: other.py
#| import sys
#| print(__name__, __file__, sys.argv[0])
import runpy
import sys

print(sorted(runpy.run_path("other.py"))[:3])
print(runpy.run_module("other", run_name="__main__")["__name__"], sys.argv)

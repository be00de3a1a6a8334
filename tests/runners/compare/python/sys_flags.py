# ways: started preloading
import sys

print(sys.flags)
print(sys._xoptions, sys.warnoptions, sys.dont_write_bytecode, sys.pycache_prefix)

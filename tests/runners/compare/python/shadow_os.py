# file: os.py
#| print("never imported: the interpreter has its own frozen")
# file: helper.py
#| print("helper")
# ways: started preloading
# either: started preloaded
import os

import helper

print(os.__file__)

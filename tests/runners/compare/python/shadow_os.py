# file: os.py
#| print("never imported")
# file: helper.py
#| print("helper")
# ways: all
import os

import helper

print(os.__file__)

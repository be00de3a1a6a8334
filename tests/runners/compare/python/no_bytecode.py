# file: helper.py
#| x = 1
# ways: all
import os

import helper

print(sorted(os.listdir(".")))

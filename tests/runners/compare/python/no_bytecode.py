# file: helper.py
#| x = 1
# ways: light mid
import os

import helper

print(sorted(os.listdir(".")))

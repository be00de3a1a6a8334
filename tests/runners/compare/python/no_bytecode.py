# file: helper.py
#| x = 1
# ways: started preloading
import os

import helper

print(sorted(os.listdir(".")))

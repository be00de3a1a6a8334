# unlisted: __pycache__/.*
# env: PYTHONDONTWRITEBYTECODE=
# file: helper.py
#| x = 1
# new: started preloaded
import helper
import os
import sys

print(sys.dont_write_bytecode, sorted(os.listdir(".")))

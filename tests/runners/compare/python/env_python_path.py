# env: PYTHONPATH=/data/lib:/data
# file: lib/helper.py
#| name = "from lib"
# new: started preloaded
import sys

import helper

print(helper.name, sys.path[:4])

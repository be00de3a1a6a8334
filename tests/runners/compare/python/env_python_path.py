# env: PYTHONPATH=/data/lib:/data
# file: lib/helper.py
#| name = "from lib"
# anew: light full
import sys

import helper

print(helper.name, sys.path[:4])

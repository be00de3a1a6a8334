import importlib.util

print(importlib.util.find_spec("no_such_module"), importlib.util.find_spec("numpy").origin)
open("made_now.py", "w").write("print('made while running')")
importlib.invalidate_caches()
import made_now
import pandas.no_such_part

# file: first.py
#| x = 1
import importlib
import sys

import first

open("second.py", "w").write("x = 2")
importlib.invalidate_caches()
print(importlib.import_module("second").x, sys.path_importer_cache["/data"].path)

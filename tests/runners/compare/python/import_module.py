# file: helper.py
#| print("imported as", __name__)
#| value = 1
# ways: all
import importlib
import os
import sys

import helper
import helper as again

print(helper is again, helper.__file__, helper.__spec__.name)
open("helper.py", "a").write("value = 2\n")
os.utime("helper.py", (1, 1))
importlib.reload(helper)
print(helper.value, "helper" in sys.modules, sorted(os.listdir(".")))

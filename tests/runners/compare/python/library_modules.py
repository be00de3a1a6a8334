# ways: preloaded
import sys

import matplotlib.pyplot
import numpy
import pandas

# A preload may have brought in more of the libraries than their import does, and nothing else.
known = ("numpy", "pandas", "matplotlib", "mpl_toolkits", "PIL", "dateutil", "pytz", "kiwisolver", "cycler", "pyparsing", "packaging")
print(sorted(m for m in sys.modules if m.partition(".")[0] not in known and not m.startswith("_") and
             m.partition(".")[0] not in sys.stdlib_module_names))

# ways: preloaded preloading
import locale
import logging
import sys
import threading
import warnings

# After the libraries that a preload brings in, imported here for the bare interpreter.
import matplotlib.pyplot
import numpy
import pandas

print(threading.active_count(), locale.setlocale(locale.LC_ALL), logging.root.handlers, sys.getrecursionlimit())
print([(f[0], str(f[1]), f[2].__name__, str(f[3]), f[4]) for f in warnings.filters])
print(matplotlib.pyplot.get_fignums(), sys.stdout.encoding, sys.gettrace(), len(numpy.random.get_state()))
print(sorted(m for m in sys.modules if m.partition(".")[0] in ("numpy", "matplotlib") and "test" in m)[:5])

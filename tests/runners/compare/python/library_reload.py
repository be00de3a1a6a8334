# ways: started preloaded
import importlib
import sys

import pandas

print(importlib.reload(sys.modules["pandas.errors"]).__name__)
del sys.modules["dateutil.tz"]
import dateutil.tz

print(dateutil.tz.gettz("Europe/Berlin") is not None)
print(pandas.read_csv.__module__, pandas.__file__, pandas.__spec__.name)

# file: dateutil.py
#| raise ImportError("mine, and broken")
# ways: started preloaded
# new: preloaded
import pandas

print(pandas.Timestamp("2020-01-01"))

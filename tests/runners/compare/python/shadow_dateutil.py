# file: dateutil.py
#| raise ImportError("mine, and broken")
# ways: light full
# anew: full
import pandas

print(pandas.Timestamp("2020-01-01"))

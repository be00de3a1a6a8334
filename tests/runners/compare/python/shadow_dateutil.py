# file: dateutil.py
#| raise ImportError("mine, and broken")
# ways: all
# anew: full
import pandas

print(pandas.Timestamp("2020-01-01"))

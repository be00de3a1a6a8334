# stdin: name,value\na,1\nb,2\n
# ways: light mid
import sys

import pandas as pd

print(pd.read_csv(sys.stdin).describe())

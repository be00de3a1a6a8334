# stdin: name,value\na,1\nb,2\n
# ways: started preloading
import sys

import pandas as pd

print(pd.read_csv(sys.stdin).describe())

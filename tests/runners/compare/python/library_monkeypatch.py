# ways: started preloaded
import warnings

import matplotlib
import numpy as np
import pandas as pd

np.seterr(all="raise")
try:
    np.array([1.0]) / 0
except FloatingPointError as e:
    print(e)
pd.set_option("display.max_rows", 4)
print(pd.DataFrame({"a": range(10)}))
matplotlib.rcParams["lines.linewidth"] = 7
print(matplotlib.rcParamsDefault["lines.linewidth"], matplotlib.rcParams["lines.linewidth"])
warnings.simplefilter("error")
try:
    pd.DataFrame({"a": [1]}).append({"a": 2}, ignore_index=True)
except FutureWarning as e:
    print(type(e).__name__)

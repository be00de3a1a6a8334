# ways: all
import pandas as pd

pd.DataFrame({"a": [1]})["missing"]

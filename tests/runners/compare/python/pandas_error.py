# ways: light full
import pandas as pd

pd.DataFrame({"a": [1]})["missing"]

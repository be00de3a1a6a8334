# ways: started preloaded
import pandas as pd

pd.DataFrame({"a": [1]})["missing"]

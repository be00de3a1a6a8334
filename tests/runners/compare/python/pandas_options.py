# ways: light full
import pandas as pd

print(pd.describe_option(_print_desc=False))

# ways: started preloaded
import pandas as pd

print(pd.describe_option(_print_desc=False))

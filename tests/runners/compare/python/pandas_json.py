# ways: started preloading
import io

import pandas as pd

frame = pd.read_json(io.StringIO('[{"a": 1, "t": "2024-01-01"}, {"a": 2, "t": null}]'))
print(frame, frame.to_json(), frame.to_dict("records"))
frame.to_pickle("frame.pickle")
print(pd.date_range("2024-01-30", periods=3, freq="M"), pd.Timestamp("2024-03-31 01:30", tz="Europe/Berlin"))

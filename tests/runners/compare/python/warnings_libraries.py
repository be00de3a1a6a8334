# ways: started preloaded
import numpy as np
import pandas as pd

print(np.array([1, 2]) / 0)
print(np.float64("nan").astype(int) if False else np.log(-1))
frame = pd.DataFrame({"a": [1, 2]})
frame.append({"a": 3}, ignore_index=True)
frame.append({"a": 3}, ignore_index=True)
part = frame[frame.a > 0]
part["b"] = 1

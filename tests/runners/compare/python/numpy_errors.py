# ways: started preloaded
import numpy as np

with np.errstate(divide="ignore"):
    print(np.array([1.0]) / 0)
np.array([1, 2]) / np.array([0, 0])
np.ones((2, 3)) @ np.ones((2, 3))

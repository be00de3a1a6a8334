# ways: all
import numpy as np

for _ in range(3):
    np.polyfit([1, 1, 1], [1, 2, 3], 2)

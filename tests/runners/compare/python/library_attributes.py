# ways: started preloaded
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd


class Kept:
    def __init__(self, name):
        self.name = name

    def __del__(self, write=os.write):
        write(1, f"deleted {self.name}\n".encode())


# What a program hangs on a library ends with it.
np.kept = Kept("numpy")
plt.figure().kept = Kept("figure")
frame = pd.DataFrame({"a": [1]})
frame.attrs["kept"] = Kept("frame")
np.file = open("left.txt", "w")
np.file.write("flushed at the end")

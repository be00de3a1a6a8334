import numpy as np

m = np.memmap("m.bin", dtype="int32", mode="w+", shape=(10,))
m[:] = range(10)
print(m.sum(), np.fromfile("m.bin", dtype="int32"))

# ways: started preloading
import numpy as np

a = np.arange(12.0).reshape(3, 4)
print(a, a.sum(axis=0), a @ a.T, np.linalg.svd(a)[1])
np.save("a.npy", a)
np.savetxt("a.txt", a)
print(np.load("a.npy") == a, np.__version__)

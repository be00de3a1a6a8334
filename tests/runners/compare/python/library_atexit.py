# ways: started preloaded
import atexit

import matplotlib.pyplot as plt
import numpy as np

atexit.register(lambda: print("figures", plt.get_fignums(), np.arange(3)))
plt.figure()
plt.figure()

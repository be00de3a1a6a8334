# env: OMP_NUM_THREADS=2
# env: OPENBLAS_NUM_THREADS=2
# ways: started preloading
# either: started preloaded
import os

import numpy as np

a = np.ones((400, 400))
print((a @ a).sum(), os.environ["OPENBLAS_NUM_THREADS"])

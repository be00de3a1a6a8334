# ways: all
import numpy as np

print(np.geterr(), np.geterrcall(), sorted(np.get_printoptions().items()), np.getbufsize())
print(np.array([1e-10, 1.0, 1e10]), np.array([0.1] * 2000), repr(np.float32(0.1)), np.core.multiarray.get_handler_name())

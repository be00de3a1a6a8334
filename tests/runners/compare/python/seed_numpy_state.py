# fresh: ^state (\S+)
# ways: started preloaded
import hashlib

import numpy as np

kind, keys, position, has_gauss, cached = np.random.get_state()
print("state", hashlib.sha256(keys.tobytes()).hexdigest())
print(kind, position, has_gauss, cached)

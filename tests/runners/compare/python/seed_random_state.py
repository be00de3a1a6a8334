# fresh: ^state (\S+)
# ways: started preloaded
import hashlib
import random

version, keys, gauss = random.getstate()
print("state", hashlib.sha256(repr(keys).encode()).hexdigest())
print(version, keys[-1], gauss)

# fresh: ^legacy (\S+)
# fresh: ^generator (\S+)
# fresh: ^integers (.+)
# ways: all
import numpy as np

print("legacy", np.random.rand())
print("generator", np.random.default_rng().random())
print("integers", np.random.randint(0, 1 << 62, 2))
np.random.seed(7)
print(np.random.rand(3), np.random.default_rng(7).integers(0, 100, 5))

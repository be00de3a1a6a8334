# fresh: ^random (\S+)
# fresh: ^integer (\S+)
# fresh: ^after fork (\S+)
# ways: all
import os
import random

print("random", random.random())
print("integer", random.SystemRandom().getrandbits(60))
r = random.Random()
print("after fork", r.getrandbits(60))
random.seed(5)
print(random.random(), random.sample(range(1000), 3), random.choice("abcdef"), os.urandom(4) != os.urandom(4))

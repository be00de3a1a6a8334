# fresh: ^random (\S+)
import random

print("random", random.random())

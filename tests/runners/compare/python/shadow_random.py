# file: random.py
#| print("my own random", __file__)
#| def random():
#|     return 4
# ways: all
# anew: full
# either: light
import random

print(random.random())

# file: random.py
#| print("my own random", __file__)
#| def random():
#|     return 4
# ways: all
# either: started
import random

print(random.random())

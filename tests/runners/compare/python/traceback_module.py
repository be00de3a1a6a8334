# ways: all
# file: helper.py
#| """A module."""
#|
#|
#| def divide(a, b):
#|     return a / b
import helper

print(helper.__file__, helper.__name__, helper.__spec__.origin, helper.__cached__)
helper.divide(1, 0)

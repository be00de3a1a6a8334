# file: broken.py
#| x = 1
#| def f(
#|     y = 2
print("begun")
import broken

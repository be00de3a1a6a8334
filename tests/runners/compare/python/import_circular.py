# file: one.py
#| import two
#| x = 1
#| y = two.y
# file: two.py
#| import one
#| y = one.x
import one

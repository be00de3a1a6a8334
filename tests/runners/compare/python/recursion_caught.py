# ways: started preloaded
import sys

deepest = 0


def forever(n):
    global deepest
    deepest = n
    forever(n + 1)


try:
    forever(0)
except RecursionError as e:
    print(type(e).__name__, e, deepest)
sys.setrecursionlimit(300)
try:
    forever(0)
except RecursionError as e:
    print(deepest)

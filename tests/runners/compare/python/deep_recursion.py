import sys

sys.setrecursionlimit(20000)


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


print(down(15000))

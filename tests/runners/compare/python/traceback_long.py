def down(n):
    if n == 0:
        raise OverflowError("at the bottom")
    return down(n - 1)


down(50)

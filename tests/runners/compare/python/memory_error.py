# ways: light mid
try:
    x = "x" * (1 << 62)
except MemoryError as e:
    print("caught", repr(e))
[0] * (1 << 60)

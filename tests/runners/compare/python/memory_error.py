# ways: started preloading
try:
    x = "x" * (1 << 62)
except MemoryError as e:
    print("caught", repr(e))
[0] * (1 << 60)

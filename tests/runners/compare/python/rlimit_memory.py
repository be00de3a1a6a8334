import resource

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    bytearray(4 << 30)
except MemoryError as e:
    print(type(e).__name__, e)
keep = [bytearray(4 << 30)]

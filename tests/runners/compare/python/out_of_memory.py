# ways: started preloaded
print("begun")
keep = [bytearray(1 << 22) for _ in range(1000)]

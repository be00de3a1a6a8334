# fresh: ^hash (\S+)
# fresh: ^bytes (\S+)
# ways: all
print("hash", hash("a text"))
print("bytes", hash(b"some bytes"))
print(hash(5), hash(1.5), hash((1, 2)))

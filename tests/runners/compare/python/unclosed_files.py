# ways: all
f = open("text.txt", "w")
f.write("buffered " * 5)
g = open("bytes.bin", "wb")
g.write(b"\0\1\2" * 100000)
h = open("append.txt", "a", buffering=1)
h.write("line\npart")
print("left open")

# ways: started preloading
import os
import sys

sys.stdout.write("part ")
os.write(1, b"direct ")
print("line")
os.write(1, b"direct\n")
sys.stdout.write("x" * 9000)
os.write(1, b"y\n")
print("bytes follow", flush=True)
sys.stdout.buffer.write(b"\xff\x00\n")

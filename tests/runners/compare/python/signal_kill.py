# ways: light mid
import os

print("a line")
os.kill(os.getpid(), 9)

# ways: all
import os

print("a line")
os.kill(os.getpid(), 9)

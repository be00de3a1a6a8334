import os

print("a line")
os.kill(os.getpid(), 11)

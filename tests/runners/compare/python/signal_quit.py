import os

print("never flushed", end="")
os.kill(os.getpid(), 3)

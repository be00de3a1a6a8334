# ways: started preloading
import os

print("a line")
os.kill(os.getpid(), 9)

# ways: started preloading
import os

print("before")
os.close(1)
print("after")

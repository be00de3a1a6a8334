# ways: light mid
import os

print("before")
os.close(1)
print("after")

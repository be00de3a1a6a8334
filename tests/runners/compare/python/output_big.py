# ways: started preloading
import sys

for n in range(20000):
    print(n, "x" * 100)
sys.exit(3)

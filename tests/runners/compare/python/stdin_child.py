# stdin: first\nsecond\nthird\n
# ways: started preloading
import os
import subprocess

print(os.read(0, 6))
subprocess.run(["head", "-n", "1"])
print(os.read(0, 100))

# ways: started preloading
import os
import sys

sys.stdout.write("twice? ")
if os.fork() == 0:
    sys.stdout.write("child\n")
else:
    os.wait()
    sys.stdout.write("parent\n")

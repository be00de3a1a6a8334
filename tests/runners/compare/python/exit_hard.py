# ways: started preloaded
import os
import sys

print("a line")
sys.stdout.write("an unfinished line that is lost")
os._exit(12)

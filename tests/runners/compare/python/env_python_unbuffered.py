# env: PYTHONUNBUFFERED=1
# new: started preloaded
import os
import sys

sys.stdout.write("part ")
print(sys.stdout.write_through, sys.stdout.line_buffering)
sys.stdout.write("written at once ")
os._exit(0)

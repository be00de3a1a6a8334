# args: -c -m -- - "a\nb" é日本 "*"
import os
import sys

print([os.fsencode(a) for a in sys.argv])
with open("/proc/self/cmdline", "rb") as f:
    print(f.read())

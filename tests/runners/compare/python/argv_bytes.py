# args: -c -m -- - "a\nb" é日本 "*"
import os
import sys

print([os.fsencode(a) for a in sys.argv])

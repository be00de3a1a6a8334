# env: PYTHONIOENCODING=latin-1
# new: started preloaded
import sys

print("ä", sys.stdout.encoding, sys.stdin.encoding, sys.stderr.errors)

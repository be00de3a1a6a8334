# env: PYTHONIOENCODING=latin-1
# anew: light full
import sys

print("ä", sys.stdout.encoding, sys.stdin.encoding, sys.stderr.errors)

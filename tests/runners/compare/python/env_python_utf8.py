# env: PYTHONUTF8=1
# anew: light full
import sys

print(sys.flags.utf8_mode, sys.stdout.errors)

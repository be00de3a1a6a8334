# env: PYTHONUTF8=1
# new: started preloaded
import sys

print(sys.flags.utf8_mode, sys.stdout.errors)

import sys

sys.exit(1 << 40)

import sys

try:
    sys.exit(5)
except SystemExit as e:
    print("caught", e.code)
finally:
    print("finally")
sys.exit(e.code + 1 if "e" in globals() else 8)

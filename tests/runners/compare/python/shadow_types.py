# file: types.py
#| import sys
#| print("types of mine", file=sys.stderr)
# ways: cold light mid
# anew: light
print("never: site cannot start without its types")

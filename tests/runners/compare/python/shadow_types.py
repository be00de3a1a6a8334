# file: types.py
#| import sys
#| print("types of mine", file=sys.stderr)
# ways: cold started preloading
# new: started
print("never: site cannot start without its types")

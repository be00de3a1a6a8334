# file: json/__init__.py
#| def dumps(x):
#|     return "mine"
# file: types.py
#| import sys
#| print("types of mine", file=sys.stderr)
# ways: all
import json

print(json.dumps(1))

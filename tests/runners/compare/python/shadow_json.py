# file: json/__init__.py
#| def dumps(x):
#|     return "mine"
# ways: light full
# anew: full
import json

print(json.dumps(1))

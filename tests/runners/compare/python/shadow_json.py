# file: json/__init__.py
#| def dumps(x):
#|     return "mine"
# ways: all
# anew: full
import json

print(json.dumps(1))

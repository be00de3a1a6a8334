# file: json/__init__.py
#| def dumps(x):
#|     return "mine"
# ways: started preloaded
# new: preloaded
import json

print(json.dumps(1))

# file: json/__init__.py
#| def dumps(x):
#|     return "mine"
# ways: started preloaded
import json

print(json.dumps(1))

import json

value = {"a": [1, 2, {"b": None}]}
print(json.dumps(value))
print(value["a"][2]["b"]["c"] + (1 if value else 2) / len(value["a"]))

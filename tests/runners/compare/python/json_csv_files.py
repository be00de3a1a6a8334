# file: in.json
#| {"b": [1, 2.5, null], "a": "ü"}
import csv
import json
import pathlib

data = json.loads(pathlib.Path("in.json").read_text())
with open("out.csv", "w", newline="") as f:
    csv.writer(f).writerows(sorted(data.items()))
print(pathlib.Path("out.csv").read_bytes(), json.dumps(data, sort_keys=True, indent=1))

# file: pandas/__init__.py
#| print("my own pandas")
# ways: light mid
# anew: full
import pandas

print(pandas.__path__)

# file: pandas/__init__.py
#| print("my own pandas")
# ways: all
# anew: full
import pandas

print(pandas.__path__)

# file: pandas/__init__.py
#| print("my own pandas")
# ways: started preloading
# new: preloaded
import pandas

print(pandas.__path__)

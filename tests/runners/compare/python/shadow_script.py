# file: script.py
#| print("another script", __name__)
import script

print(__name__, script.__file__)

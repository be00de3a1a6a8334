# file: array.so
#| not a library
# file: struct.py
#| def unpack(*args):
#|     return "mine"
# ways: started preloading
# new: preloaded
# either: started
import struct

print(struct.unpack("b", b"x"))

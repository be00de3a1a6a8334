# file: array.so
#| not a library
# file: struct.py
#| def unpack(*args):
#|     return "mine"
# ways: light mid
# anew: full
# either: light
import struct

print(struct.unpack("b", b"x"))

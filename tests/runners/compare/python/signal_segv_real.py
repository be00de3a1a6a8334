# ways: light full
import ctypes

print("a line")
ctypes.string_at(0)

# ways: started preloaded
import ctypes

print("a line")
ctypes.string_at(0)

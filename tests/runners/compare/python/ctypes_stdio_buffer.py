# ways: started preloaded
import ctypes

libc = ctypes.CDLL(None)
libc.printf(b"buffered by libc until the end\n")
print("printed by python")

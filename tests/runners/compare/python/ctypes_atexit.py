# ways: started preloaded
import ctypes

libc = ctypes.CDLL(None)
libc.atexit(libc.abort)
print("the C library's handlers run behind Python's end")

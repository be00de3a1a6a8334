import atexit
import ctypes

atexit.register(print, "Python's handlers do not run")
libc = ctypes.CDLL(None)
libc.printf(b"buffered by libc\n")
print("calling exit")
libc.exit(14)

# ways: all
import ctypes

libc = ctypes.CDLL(None)


@ctypes.CFUNCTYPE(None)
def at_end():
    libc.puts(b"libc's atexit")


print("calling exit")
libc.exit(14)

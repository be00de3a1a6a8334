# fresh: ^libc (\S+)
# fresh: ^canary (\S+)
import ctypes

libc = ctypes.CDLL(None)
print("libc", ctypes.cast(libc.getenv, ctypes.c_void_p).value)
libc.getauxval.restype = ctypes.c_ulong
libc.getauxval.argtypes = [ctypes.c_ulong]
print("canary", ctypes.string_at(libc.getauxval(25), 16).hex())

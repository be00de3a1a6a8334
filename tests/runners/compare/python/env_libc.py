# env: GIVEN=value
import ctypes
import os

libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"GIVEN"), libc.getenv(b"LANG"), libc.getenv(b"LD_PRELOAD"), libc.getenv(b"NEVER"))
os.putenv("PUT", "x")
print(libc.getenv(b"PUT"), "PUT" in os.environ)
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
names = []
while environ[len(names)]:
    names.append(environ[len(names)].split(b"=")[0])
print(sorted(names))

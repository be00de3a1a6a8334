import ctypes

libc = ctypes.CDLL("libc.so.6", use_errno=True)
print(libc.strlen(b"hello"), libc.open(b"/nowhere", 0), ctypes.get_errno(), libc.getppid())
libc.printf(b"printf %d\n", 5)
libc.fflush(None)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    return ctypes.cast(a, ctypes.POINTER(ctypes.c_int))[0] - ctypes.cast(b, ctypes.POINTER(ctypes.c_int))[0]


array = (ctypes.c_int * 4)(3, 1, 4, 2)
libc.qsort(array, 4, 4, compare)
print(list(array))

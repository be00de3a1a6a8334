# ways: started preloaded
# A template stands beside an interpreter that waited. A program can neither look into it nor change it.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def opens(path, flags):
    try:
        os.close(os.open(path, flags))
    except OSError:
        return False
    return True


def writes(pid):
    data = ctypes.create_string_buffer(1)
    part = Part(ctypes.addressof(data), 1)
    libc.process_vm_writev(pid, ctypes.byref(part), 1, ctypes.byref(part), 1, 0)
    return ctypes.get_errno() != 1  # EPERM


others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
for pid in others:
    for name in ("mem", "maps", "environ", "fd"):
        if opens(f"/proc/{pid}/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY):
            print("open:", name)
    if writes(pid):
        print("written")
    if libc.ptrace(16, pid, 0, 0) == 0:  # PTRACE_ATTACH
        print("traced")
print("over")

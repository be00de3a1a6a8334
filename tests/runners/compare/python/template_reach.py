# ways: started preloaded
# A template stands beside an interpreter that waited. A program can neither look into it nor change it.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def opens(path, flags):
    """A process that is just ending has files here, but nothing in them; it can be traced, but has no memory."""
    try:
        fd = os.open(path, flags)
        there = flags == os.O_RDWR or bool(os.listdir(fd) if path.endswith("/fd") else os.read(fd, 1))
        os.close(fd)
    except OSError:
        return False
    return there


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
    if libc.ptrace(16, pid, 0, 0) == 0 and opens(f"/proc/{pid}/maps", os.O_RDONLY):  # PTRACE_ATTACH
        print("traced")
print("over")

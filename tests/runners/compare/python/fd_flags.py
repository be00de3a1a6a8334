# ways: started preloading
import fcntl
import os

for fd in range(3):
    print(fd, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND, fcntl.fcntl(fd, fcntl.F_GETFD))

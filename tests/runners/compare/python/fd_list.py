# ways: all
import os
import stat

fds = os.listdir("/proc/self/fd")
print(sorted(fds))
for fd in range(3):
    mode = os.fstat(fd).st_mode
    print(fd, stat.filemode(mode)[0], os.get_inheritable(fd), os.get_blocking(fd))
print(os.open("/dev/null", os.O_RDONLY), os.pipe())

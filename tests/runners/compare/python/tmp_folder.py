# ways: started preloading
import os
import stat

print(sorted(os.listdir("/tmp")), sorted(os.listdir("/dev/shm")), os.listdir("/data"))
info = os.stat("/tmp/script.py")
print(stat.filemode(info.st_mode), info.st_uid, info.st_nlink)
print(open("/tmp/script.py").readline())

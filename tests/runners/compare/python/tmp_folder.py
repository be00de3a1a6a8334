# ways: started preloading
import os
import stat

print(sorted(os.listdir("/tmp")), sorted(os.listdir("/dev/shm")), os.listdir("/data"))
info = os.stat("/data/.script.py")
print(stat.filemode(info.st_mode), info.st_uid, info.st_nlink)
print(open("/data/.script.py").readline())

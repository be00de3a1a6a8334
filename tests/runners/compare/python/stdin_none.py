import os
import stat
import sys

print(sys.stdin, sys.stdin.read() == "", sys.stdin.isatty(), os.read(0, 10))
print(stat.filemode(os.fstat(0).st_mode)[0], os.fstat(0).st_size)

# stdin: 0123456789\n
# ways: all
import os
import stat
import sys

print(sys.stdin.seekable(), sys.stdin.tell(), sys.stdin.isatty(), sys.stdin.fileno(), os.lseek(0, 0, os.SEEK_CUR))
print(stat.S_ISREG(os.fstat(0).st_mode), os.fstat(0).st_size)
print(sys.stdin.read(3), sys.stdin.tell(), sys.stdin.seek(0), sys.stdin.read())

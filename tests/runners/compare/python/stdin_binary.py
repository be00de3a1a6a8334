# stdin: \x00\x01\xff\nrest
# ways: started preloading
import os
import sys

print(sys.stdin.buffer.read(3), sys.stdin.buffer.peek(), sys.stdin.buffer.read())
print(os.lseek(0, 0, os.SEEK_SET), os.read(0, 100), os.read(0, 100))

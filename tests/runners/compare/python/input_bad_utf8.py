# stdin: ok\n\xff\xfe\nend
import sys

print(ascii(sys.stdin.readline()))
print(ascii(sys.stdin.read()), sys.stdin.errors)

# stdin: a\r\nb\rc\nd
import sys

print(list(sys.stdin))

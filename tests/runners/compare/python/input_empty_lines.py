# stdin: \n\n  x  \n
import sys

print([input(), input(), input()])
print(sys.stdin.read(), sys.stdin.readline(), list(sys.stdin))

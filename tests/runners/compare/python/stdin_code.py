# stdin: x = 5\nprint(x * 2)\n1/0\n
import code
import sys

exec(sys.stdin.readline())
code.interact(banner="hello", local={"y": 1})

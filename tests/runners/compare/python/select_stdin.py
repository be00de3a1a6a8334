# stdin: ready\n
# ways: started preloading
import select
import sys

print([f.fileno() for f in select.select([sys.stdin], [], [], 5)[0]], sys.stdin.readline())
try:
    select.epoll().register(0)
except PermissionError as e:
    print(e)

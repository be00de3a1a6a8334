# ways: all
import os

for wait in (os.wait, lambda: os.waitpid(-1, 0), lambda: os.wait3(0), lambda: os.waitid(os.P_ALL, 0, os.WEXITED),
             lambda: os.waitpid(-1, os.WNOHANG | 0x40000000), lambda: os.waitpid(-1, os.WNOHANG | -0x80000000)):
    try:
        print(wait())
    except ChildProcessError as e:
        print(e)
with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as f:
    print(repr(f.read()))

# ways: started preloaded
import os
import sys

print("before", flush=True)
pid = os.fork()
if pid == 0:
    print("child", os.getppid() == os.getsid(0))
    sys.exit(6)
_, status = os.waitpid(pid, 0)
print("parent", os.waitstatus_to_exitcode(status))

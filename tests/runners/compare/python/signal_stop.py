import os
import signal

pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(4)
_, status = os.waitpid(pid, os.WUNTRACED)
print(os.WIFSTOPPED(status))
os.kill(pid, signal.SIGCONT)
print(os.waitpid(pid, 0)[1])

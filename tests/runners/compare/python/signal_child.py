import os
import signal
import time

died = []
signal.signal(signal.SIGCHLD, lambda *_: died.append(os.waitpid(-1, os.WNOHANG)[1]))
if os.fork() == 0:
    os._exit(0)
while not died:
    time.sleep(0.01)
print(died)

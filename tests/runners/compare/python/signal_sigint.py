# ways: all
import os
import signal
import time

print("handler", signal.getsignal(signal.SIGINT))
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupted")
os.kill(os.getpid(), signal.SIGINT)
time.sleep(10)

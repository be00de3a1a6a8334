import os
import signal
import sys


def handler(number, frame):
    print("got", signal.Signals(number).name, frame.f_code.co_name)


for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
    signal.signal(s, handler)
    os.kill(os.getpid(), s)
signal.raise_signal(signal.SIGUSR1)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(21))
os.kill(os.getpid(), signal.SIGTERM)

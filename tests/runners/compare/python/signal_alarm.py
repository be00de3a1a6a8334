import signal
import time


class Late(Exception):
    pass


def handler(number, frame):
    raise Late(number)


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    time.sleep(20)
except Late as e:
    print("woken", repr(e))
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(1)
time.sleep(20)

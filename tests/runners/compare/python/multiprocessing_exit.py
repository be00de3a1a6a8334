import multiprocessing
import os
import sys


def by_number():
    sys.exit(3)


def by_text():
    sys.exit("child's words")


def by_signal():
    os.kill(os.getpid(), 15)


def by_error():
    raise ValueError("child's error")


for target in (by_number, by_text, by_signal, by_error):
    p = multiprocessing.Process(target=target, name=target.__name__)
    p.start()
    p.join()
    print(target.__name__, p.exitcode, flush=True)

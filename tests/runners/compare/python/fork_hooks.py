import os
import random

before = random.getstate()
if os.fork() == 0:
    print("child's state is another one:", random.getstate() != before, flush=True)
    os._exit(0)
os.wait()
print("parent's is the same:", random.getstate() == before)

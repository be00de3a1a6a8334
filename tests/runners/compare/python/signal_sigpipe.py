import os

r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError as e:
    print(e)
import signal

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print("now it kills", flush=True)
os.write(w, b"x")

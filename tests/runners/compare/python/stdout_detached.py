import sys

raw = sys.stdout.detach()
raw.write(b"raw\n")
sys.stderr.write("stdout is gone\n")

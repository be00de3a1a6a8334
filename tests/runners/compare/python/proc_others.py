# ways: all
# differs: ^1 .*
import os

for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            print(1 if pid == 1 else "other", f.read().split("\0"))
    except OSError:
        pass

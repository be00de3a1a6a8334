# ways: started preloaded
# differs: ^1 .*
# An interpreter that waited has the template beside it that it was forked from.
import os

found = set()
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            found.add(("1" if pid == 1 else "other", f.read()))
    except OSError:
        pass
for one in sorted(found):
    print(*one)

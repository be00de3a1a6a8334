# ways: started preloaded
# differs: ^1 .*
# An interpreter that waited has templates beside it: the one that it was forked from, and maybe Bun's. One that was killed before has
# no command line, and goes when it is reaped.
import os

found = set()
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            words = f.read()
            if words and not words.startswith("bun\0--preload="):
                found.add(("1" if pid == 1 else "other", words))
    except OSError:
        pass
for one in sorted(found):
    print(*one)

# optional: , '/usr/local/lib/sandbox/warm\.so'
with open("/proc/self/maps") as f:
    paths = {line.split(maxsplit=5)[5].strip() for line in f if len(line.split(maxsplit=5)) == 6}
print(sorted(p for p in paths if not p.startswith(("/usr/lib/", "/lib/", "["))))

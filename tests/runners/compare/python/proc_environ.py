# env: GIVEN=value
# ways: light full
with open("/proc/self/environ", "rb") as f:
    print(sorted(name.split(b"=")[0] for name in f.read().split(b"\0") if name))

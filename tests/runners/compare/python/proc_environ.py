# env: GIVEN=value
# optional: GIVEN|LD_PRELOAD|SANDBOX_HOOK
# ways: started preloaded
with open("/proc/self/environ") as f:
    for variable in sorted(f.read().split("\0")):
        print(end=variable.partition("=")[0])

# ways: started preloading
# args: one two
import os
import sys

print("before", flush=True)
if os.environ.get("AGAIN") != "yes":
    os.environ["AGAIN"] = "yes"
    os.execv(sys.executable, ["python3", __file__, "changed", *sys.argv[1:]])
print("again", sys.argv, sorted(os.listdir("/proc/self/fd")))

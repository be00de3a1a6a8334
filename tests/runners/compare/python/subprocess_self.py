import subprocess
import sys

code = "import sys, random; print(sys.flags.hash_randomization, sys.stdin.read(), __name__)"
print(subprocess.check_output([sys.executable, "-c", code], stdin=subprocess.DEVNULL))
print(subprocess.check_output([sys.executable, "-I", "-S", "-c", "import sys; print(sorted(sys.modules))"]).decode())
print(subprocess.check_output([sys.executable, "-c", "import sys; print(sorted(sys.modules))"]).decode())

# env: EXTRA=given
import os
import subprocess
import sys

print(subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines() and
      sorted(subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines()))
os.environ["ADDED"] = "later"
del os.environ["EXTRA"]
print(sorted(subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines()))
print(sorted(subprocess.run(["env"], capture_output=True, text=True, env={"ONLY": "this"}).stdout.splitlines()))
print(subprocess.run([sys.executable, "-c", "import os, sys; print(sorted(os.listdir('/proc/self/fd')), sys.path[1:3], "
                      "os.environ.get('LD_PRELOAD'))"], capture_output=True, text=True))

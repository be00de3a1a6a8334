# ways: all
# stdin: for the child\n
import os
import subprocess
import sys

print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True))
print(subprocess.run(["cat"], stdout=subprocess.PIPE).stdout)
subprocess.run(["echo", "direct"])
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sys.stdin.read())"], input="text",
                     capture_output=True, text=True).stdout)
print(subprocess.call("kill -9 $$", shell=True), subprocess.getstatusoutput("exit 4"), os.system("exit 5"))

# env: PATH=/data/bin:/usr/bin:/bin
# file: bin/tool
#| #!/bin/sh
#| echo the tool
# ways: started preloading
# either: started preloaded
import os
import shutil
import subprocess

os.chmod("bin/tool", 0o755)
print(shutil.which("tool"), os.get_exec_path())
subprocess.run(["tool"])

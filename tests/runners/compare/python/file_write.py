# stdin: a line\nmore\x00\xff
# file: pkg/__init__.py
#| value = 5
# file: data.txt
#| hello
import os
import sys

import pkg

print(pkg.value, open("data.txt").read(), sys.stdin.buffer.read())
os.makedirs("deep/er")
open("deep/er/file", "w").write("x" * 1000)
os.symlink("file", "deep/er/link")
os.chmod("data.txt", 0o600)
sys.exit(3)

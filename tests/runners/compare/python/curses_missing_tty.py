import os

try:
    os.get_terminal_size()
except OSError as e:
    print(e)
import shutil

print(shutil.get_terminal_size(), os.isatty(0), os.isatty(1), os.isatty(2))
try:
    os.ctermid() and open("/dev/tty")
except OSError as e:
    print(e)

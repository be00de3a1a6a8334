# env: LANG=C
# env: LC_ALL=POSIX
# new: started preloaded
import locale
import sys

print(locale.setlocale(locale.LC_ALL, ""), sys.flags.utf8_mode, sys.stdout.encoding, sys.getfilesystemencoding())

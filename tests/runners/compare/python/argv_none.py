import sys

print(sys.argv, sys.orig_argv, sys.executable, sys.prefix, sys.base_prefix, sys.version, sys.platform)

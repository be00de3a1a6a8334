# ways: cold started
import sys

print([m for m in ("numpy", "pandas", "matplotlib", "PIL", "logging", "socket", "struct", "random", "threading") if m in sys.modules])

import sys

print(sorted(vars(sys)))

# env: NAME=a value
# env: EMPTY=
# env: UNICODE=ä日
# env: NAME=the last one counts
# env: MULTI=a\nb=c
# ways: all
import os

for name, value in sorted(os.environ.items()):
    print(name, repr(value), os.getenv(name) == value)
print(os.environb[b"UNICODE"], len(os.environ))

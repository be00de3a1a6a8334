# ways: started preloaded
import sys

for f in (sys.stdin, sys.stdout, sys.stderr):
    print(f.name, f.mode, f.encoding, f.errors, f.line_buffering, f.write_through, f.closed, f.fileno(), type(f.buffer).__name__)
print(sys.stdout is sys.__stdout__, sys.stdin is sys.__stdin__, sys.stderr is sys.__stderr__)

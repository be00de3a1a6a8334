import sys

print("to stderr", file=sys.stderr)
sys.stderr.write("no newline")
sys.stderr.buffer.write(b"\xfe\n")
print("to stdout")

import contextlib
import io
import sys

with contextlib.redirect_stdout(io.StringIO()) as caught:
    print("caught")
print(repr(caught.getvalue()))
sys.stdout = open("log.txt", "w")
print("into a file that is never closed")

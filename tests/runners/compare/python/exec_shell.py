import os

print("before", flush=True)
os.execvp("sh", ["sh", "-c", "echo shell $$ | tr -d 0-9; cat /proc/$$/comm; exit 9"])

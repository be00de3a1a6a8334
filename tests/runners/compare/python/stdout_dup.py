import os

saved = os.dup(1)
f = os.open("captured.txt", os.O_CREAT | os.O_WRONLY, 0o644)
os.dup2(f, 1)
print("into the file", saved, f)
os.system("echo child too")
os.dup2(saved, 1)
print("back")

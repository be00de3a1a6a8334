# ways: started preloading
# file: here.txt
#| text
import os
import pathlib

print(oct(os.umask(0o027)), pathlib.Path.cwd(), sorted(os.listdir()), os.path.abspath("here.txt"))
pathlib.Path("made").mkdir()
pathlib.Path("made/file").write_text("x")
print(oct(pathlib.Path("made/file").stat().st_mode), pathlib.Path("/mnt/data/here.txt").read_text())
os.umask(0)
pathlib.Path("open").touch()

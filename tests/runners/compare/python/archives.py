import gzip
import os
import shutil
import tarfile
import zipfile

open("a.txt", "w").write("text")
os.utime("a.txt", (0, 0))
with zipfile.ZipFile("a.zip", "w") as z:
    z.writestr(zipfile.ZipInfo("inside.txt"), "in the zip")
with gzip.GzipFile("a.gz", "wb", mtime=0) as g:
    g.write(b"x" * 1000)
with tarfile.open("a.tar", "w") as t:
    t.add("a.txt")
shutil.copytree(".", "/tmp/copy")
print(sorted(os.listdir("/tmp/copy")))

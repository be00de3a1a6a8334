import sys
import zipfile

with zipfile.ZipFile("lib.zip", "w") as z:
    z.writestr(zipfile.ZipInfo("zipped.py"), "def f():\n    raise ValueError('in the zip')\n")
sys.path.insert(0, "lib.zip")
import zipped

print(zipped.__file__)
zipped.f()

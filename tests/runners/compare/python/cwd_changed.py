import os
import pathlib

os.chdir("/tmp")
print(os.getcwd(), sorted(os.listdir("/tmp")), pathlib.Path(__file__).resolve())
print(os.path.realpath("/mnt/data"), os.stat("/data").st_mode & 0o777)

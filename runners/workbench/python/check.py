#!/usr/bin/python3 -P
"""Imports libraries, as a program of the conversation would when this has been installed: `check.py DESCRIPTOR FOLDER LIBRARY…`.

FOLDER comes before what is installed already. The descriptor gets a line for each library: its name, and what is wrong.
"""

import importlib
import os
import sys

PACKAGES = "/data/.packages/python"


def main():
    said, folder, *libraries = sys.argv[1:]
    sys.path.insert(sys.path.index(PACKAGES), folder)
    sys.dont_write_bytecode = True
    for name in libraries:
        os.write(int(said), f"{name}: ".encode())
        try:
            importlib.import_module(name)
            problem = ""
        except Exception as wrong:  # whatever it is, programs get it, too
            problem = f"{type(wrong).__name__}: {wrong}".split("\n")[0][:200]
        os.write(int(said), f"{problem}\n".encode())
    # What has been imported may hang at the end.
    os._exit(0)


main()

#!/usr/bin/python3 -P
"""Imports libraries, as a program of the conversation would when this has been installed:
`check.py DESCRIPTOR FOLDER LIBRARY… -- LIBRARY…`.

FOLDER comes before what is installed already. The descriptor gets a line for each library: its name, and what is wrong. Those
behind -- are imported in a process each, which has the first ones, so that all of them together need no more memory than one.
"""

import importlib
import os
import signal
import sys

PACKAGES = "/data/.packages/python"


def problem_of(name):
    try:
        importlib.import_module(name)
    except BaseException as wrong:  # whatever it is, programs get it, too
        return f"{type(wrong).__name__}: {wrong}".split("\n")[0][:200]
    return ""


def tell(said, text):
    os.write(int(said), text.encode())


def import_apart(said, name):
    pid = os.fork()
    if pid == 0:
        tell(said, f"{name}: {problem_of(name)}\n")
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    # A lack of memory is not the package's fault.
    if code < 0 and code != -signal.SIGKILL:
        tell(said, f"{name}: ended by signal {-code}\n")


def main():
    said, folder, *libraries = sys.argv[1:]
    sys.path.insert(sys.path.index(PACKAGES), folder)
    sys.dont_write_bytecode = True
    together = libraries.index("--")
    for name in libraries[:together]:
        tell(said, f"{name}: ")
        tell(said, f"{problem_of(name)}\n")
    for name in libraries[together + 1:]:
        import_apart(said, name)
    # What has been imported may hang at the end.
    os._exit(0)


main()

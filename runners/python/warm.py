"""Holds an interpreter that was started before its program is known, on the way into that program.

`python3 SCRIPT` has come as far as sitecustomize, SCRIPT does not exist yet, and descriptor 3 leads to the entry
program (what is said there: runners/common/entry.h). When the program has come, this code returns, and Python goes on
by itself: everything about the run is its own work. So nothing of this file may stay behind, and it imports nothing
that `python3` has not imported by now.
"""

import os
import stat
import sys

HOOK = 3
PACKET_MAX = 65536
PRELOAD = "/usr/local/lib/sandbox/preload.py"
PACKAGES = "/data/.packages/python"
MODULE_FILES = (".py", ".pyc", ".so")
# What a library reads from the working directory when it is imported.
SETTINGS = {"matplotlib": "matplotlibrc"}


def receive(wait):
    """The next packet; None when there is none and wait is false. Without the entry program there is no point in living."""
    os.set_blocking(HOOK, wait)
    try:
        packet = os.read(HOOK, PACKET_MAX)
    except BlockingIOError:
        return None
    if not packet:
        os._exit(0)
    return packet


def importable(path):
    return path.endswith(MODULE_FILES) or os.path.isdir(path) and any(f.startswith("__init__.") for f in os.listdir(path))


def provides(folder, modules):
    """Whether an import would find one of the modules in this folder."""
    return any(name.partition(".")[0] in modules and importable(os.path.join(folder, name)) for name in os.listdir(folder))


def shadowed():
    """Whether a module that is loaded would have been another one, or would have begun otherwise, now that the working
    directory has its files, and the conversation its packages, which come behind the standard library."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    if provides(".", loaded) or any(os.path.exists(SETTINGS[name]) for name in loaded & SETTINGS.keys()):
        return True
    return os.path.isdir(PACKAGES) and provides(PACKAGES, loaded - sys.stdlib_module_names)


def take(packet):
    """Makes the interpreter look as if it had been started for this program."""
    for item in packet[1:].split(b"\0")[:-1]:
        if item[:1] == b"A":
            text = os.fsdecode(item[1:])
            sys.argv.append(text)
            sys.orig_argv.append(text)
        else:
            name, _, value = item[1:].partition(b"=")
            os.environb[name] = value
    add_packages()
    for finder in sys.path_importer_cache.values():
        if finder is not None:
            finder.invalidate_caches()


def preload(names):
    """Imports the names, from where the image has them: no file of the conversation counts before its program runs.
    Returns the program's packet if that came meanwhile."""
    everywhere, here = sys.path[:], os.getcwd()
    sys.path[:] = [place for place in everywhere if place and not (place + "/").startswith(here + "/")]
    os.chdir("/")
    try:
        return preload_steps(names)
    finally:
        os.chdir(here)
        sys.path[:] = everywhere


def preload_steps(names):
    with open(PRELOAD) as file:
        space = {"__name__": "preload"}
        exec(compile(file.read(), PRELOAD, "exec"), space)
    pace = space["Pace"](HOOK)
    for name, step in space["steps"](names):
        os.write(HOOK, b"S" + name.encode())
        pace.rest()
        packet = receive(wait=False)
        if packet:
            return packet
        step()
    os.write(HOOK, b"D")
    return None


def wait():
    """Returns when this interpreter is the program's."""
    os.write(HOOK, b"U")
    while True:
        packet = receive(wait=True)
        if packet[:1] == b"P":
            packet = preload(packet[1:].decode().split()) or receive(wait=True)
        if not shadowed():
            break
        os.write(HOOK, b"N")
    take(packet)
    os.write(HOOK, b"Y")
    os.close(HOOK)


def connected():
    try:
        return stat.S_ISSOCK(os.fstat(HOOK).st_mode)
    except OSError:
        return False


os.environ.pop("SANDBOX_HOOK", None)
if connected():
    try:
        wait()
    except BaseException:
        os._exit(1)  # a new one will do better; this one must not run the program without having said so

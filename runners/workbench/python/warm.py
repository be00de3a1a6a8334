"""Holds a template: an interpreter that those of the programs are forked from, before their programs are known.
Libraries are loaded by a second one, which is forked from the first.

`python3 SCRIPT` has come as far as sitecustomize, SCRIPT does not exist yet, and descriptor 3 leads to the entry
program (what is said there: runners/common/entry.h). The template forks whenever it is asked to, and loads what it is
told to. A child of it waits for its program. When that has come, this code returns in the child, and Python goes on by
itself: everything about the run is its own work. So nothing of this file may stay behind, and it imports nothing that
`python3` has not imported by now, but for what it takes descriptors with.
"""

import _socket
import gc
import os
import stat
import sys

del sys.modules["_socket"], sys.modules["gc"]

HOOK = 3
FORK_FDS = 4  # 0, 1, 2 and HOOK of a child
TEMPLATE = "SANDBOX_TEMPLATE"  # a variable that tells warm.so what a fork is to be
INT = 4  # bytes
PACKET_MAX = 65536
PRELOAD = "/usr/local/lib/sandbox/python/preload.py"
PACKAGES = "/data/.packages/python"
MODULE_FILES = (".py", ".pyc", ".so")
# What a library reads from the working directory when it is imported.
SETTINGS = {"matplotlib": "matplotlibrc"}
OOM_SCORE = b"1000"  # as runners/common/child.c gives to what is no template


def importable(path):
    return path.endswith(MODULE_FILES) or os.path.isdir(path) and any(f.startswith("__init__.") for f in os.listdir(path))


def read_only(place):
    try:
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def provides(folder, modules):
    """Whether an import would find one of the modules in this folder."""
    return any(name.partition(".")[0] in modules and importable(os.path.join(folder, name)) for name in os.listdir(folder))


def settings_of(modules):
    return [SETTINGS[name] for name in modules & SETTINGS.keys()]


def shadowed(modules, foreign, settings):
    """Whether one of the modules would be another one, or would begin otherwise, now that the working directory has its
    files, and the conversation its packages, which come behind the standard library."""
    if provides(".", modules) or any(os.path.exists(name) for name in settings):
        return True
    return os.path.isdir(PACKAGES) and provides(PACKAGES, foreign)


class Loaded:
    """What is loaded, as far as files can come before it. It is made before the fork: each name that a child of the template
    looks at has its page copied."""

    def __init__(self):
        self.size = len(sys.modules)
        self.modules = {name.partition(".")[0] for name in sys.modules}
        self.foreign = self.modules - sys.stdlib_module_names
        self.settings = settings_of(self.modules)
        self.finders = [finder for place, finder in sys.path_importer_cache.items() if finder is not None and not read_only(place)]

    def shadowed(self):
        return shadowed(self.modules, self.foreign, self.settings)


def take(packet, loaded):
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
    for finder in loaded.finders:
        finder.invalidate_caches()


def renew():
    """What Python does not make anew in a child."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "threading" in sys.modules:
        sys.modules["threading"].main_thread()._set_native_id()
    if "_sandbox_figures" in sys.modules:
        sys.modules["_sandbox_figures"].process = os.getpid()


def become_child(fds):
    os.setsid()
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
    os.closerange(FORK_FDS, max(fds) + 1)
    try:
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, OOM_SCORE)
        os.close(score)
    except OSError:
        pass
    renew()


def become_template(fds):
    os.setsid()
    os.dup2(fds[HOOK], HOOK)
    os.closerange(FORK_FDS, max(fds) + 1)


def fork(fds, become):
    """Makes a child of the entry program's with these descriptors; true in that one."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    between = os.fork()  # warm.so forks twice
    if between > 0:
        os.waitpid(between, 0)
        for fd in (reader, writer, *fds):
            os.close(fd)
        return False
    os.close(writer)
    os.read(reader, 1)  # ends when the template has closed its end: the process between has gone
    os.close(reader)
    become(fds)
    return True


class Template:
    """The template's work. What does it returns true where it has become a child."""

    def __init__(self):
        self.socket = _socket.socket(fileno=HOOK)
        self.loaded = None
        self.before = None
        self.walked = set()

    def receive(self, flags=0):
        """The next packet and its descriptors; nothing if there is none. Without the entry program there is no point in
        living."""
        try:
            packet, messages, _, _ = self.socket.recvmsg(PACKET_MAX, _socket.CMSG_SPACE(FORK_FDS * INT), flags)
        except BlockingIOError:
            return b" ", []
        if not packet:
            os._exit(0)
        data = messages[0][2] if messages else b""
        return packet, [int.from_bytes(data[at:at + INT], sys.byteorder) for at in range(0, len(data), INT)]

    def fork(self, fds):
        if not self.loaded or self.loaded.size != len(sys.modules):
            self.loaded = Loaded()
        if not fork(fds, become_child):
            return False
        self.socket.detach()
        return True

    def fork_template(self, fds):
        """Makes a child that goes on as this one does, with a hook of its own, and says so."""
        os.environ[TEMPLATE] = "1"
        try:
            child = fork(fds, become_template)
        finally:
            del os.environ[TEMPLATE]
        if child:
            os.write(HOOK, b"U%d" % os.getpid())

    def serve(self):
        while True:
            packet, fds = self.receive()
            if self.obey(packet, fds):
                return

    def obey(self, packet, fds):
        letter, names = packet[:1], packet[1:].decode().split()
        if letter == b"T":
            self.fork_template(fds)
        if letter == b"L":
            os.write(HOOK, b"L" if self.load(names) else b"N")
        if letter == b"P":
            packet, fds = self.away(self.preload, names)
            return packet is not None and self.obey(packet, fds)
        return letter == b"F" and self.fork(fds)

    def away(self, work, names):
        """Does the work, which imports names, from where the image has them: no file of the conversation counts before its
        program runs."""
        everywhere, here = sys.path[:], os.getcwd()
        sys.path[:] = [place for place in everywhere if place and not (place + "/").startswith(here + "/")]
        os.chdir("/")
        try:
            with open(PRELOAD) as file:
                space = {"__name__": "preload"}
                exec(compile(file.read(), PRELOAD, "exec"), space)
            self.before = self.before or set(sys.modules)
            return work(space, names)
        finally:
            os.chdir(here)
            sys.path[:] = everywhere

    def preload(self, space, names):
        """Until a packet comes, which it returns; none: all is done."""
        pace = space["Pace"](HOOK)
        for name, step in space["steps"](names, self.before, self.walked):
            os.write(HOOK, b"S" + name.encode())
            pace.rest()
            packet, fds = self.receive(_socket.MSG_DONTWAIT)
            if packet != b" ":
                os.write(HOOK, b"S")
                return packet, fds
            step()
        os.write(HOOK, b"D")
        return None, []

    def load(self, names):
        """For a program that waits; false where the conversation has modules of these names itself."""
        modules = {name.partition(".")[0] for name in names}
        if shadowed(modules, modules, settings_of(modules)):
            return False
        self.away(lambda space, names: space["bring_in_now"](names), names)
        return True


def print_nowhere():
    """What a library prints when it is imported is no program's output."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


def wait(loaded):
    """Returns when this interpreter is the program's."""
    os.write(HOOK, b"U%d" % os.getpid())
    packet = os.read(HOOK, PACKET_MAX)
    if not packet:
        os._exit(0)
    if loaded.shadowed():
        os.write(HOOK, b"N")
        os._exit(0)
    take(packet, loaded)
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
        print_nowhere()
        gc.freeze()  # a program's collections, the last one at its end, do not go through what was there before it
        template = Template()
        template.serve()
        wait(template.loaded)
        del template
    except BaseException:
        os._exit(1)  # a new one will do better; this one must not run the program without having said so

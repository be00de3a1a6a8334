"""The scratch copy of the tree with its sanitizer build, and running of what may misbehave in it."""
import ctypes
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import faults

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("common", "fcgi", "runners", "nginx")
PAGE = "nginx/page/"  # only a browser sees it
JOBS = str(os.cpu_count() or 1)
BUILD_SECONDS = 1200
PR_SET_CHILD_SUBREAPER = 36
# A fault may kill(-1) or remove "/": it sees its own processes alone, and writes to $1, which is its /tmp, and to the copy, $2.
WALLS = """mount -t proc proc /proc && mount --bind "$1" /tmp && mount --bind "$2" "$2" && mount -o remount,bind,ro / || exit
shift 2
"$@"
exit $?"""


class Trouble(Exception):
    """What hinders the whole run, in a sentence."""


# ---- the tree ----

def tree_files():
    """What git knows here, and what is new."""
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-zco", "--exclude-standard"], capture_output=True, check=False)
    if listed.returncode != 0:
        raise Trouble(f"{TOP} is no checkout of git, which names the files")
    return sorted({os.fsdecode(name) for name in listed.stdout.split(b"\0") if name and os.path.lexists(os.path.join(os.fsencode(TOP), name))})


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def mutable():
    """(path, number) -> the faults of that line, in the order of the tree."""
    found = {}
    for path in tree_files():
        if path.split("/")[0] in FOLDERS and not path.startswith(PAGE):
            try:
                text = read(f"{TOP}/{path}")
            except (UnicodeDecodeError, OSError):
                continue
            for fault in faults.faults(path, text):
                found.setdefault((path, fault.number), []).append(fault)
    return found


# ---- processes ----

def adopt_orphans():
    """What a test leaves behind becomes a child of ours, so that it is found."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def descendants():
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {os.getpid()}


def kill_descendants():
    """Those that fork while we look are found at the next look."""
    while left := descendants():
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Done:
    def __init__(self, status, seconds, text):
        self.ok, self.skipped, self.late = status in (0, 77), status == 77, status is None
        self.seconds, self.text = seconds, text


class Scratch:
    """One at a time, below cache; what runs in it has a folder for its temporary files, which end with it."""

    def __init__(self, cache):
        self.cache, self.tree, self.build = cache, f"{cache}/tree", f"{cache}/tree/build"
        os.makedirs(self.tree, exist_ok=True)
        self.lock = open(f"{cache}/lock", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Trouble(f"another run of tests/mutate.sh works in {cache}: wait for its end") from None
        self.tmp = tempfile.mkdtemp(prefix="mutate-", dir="/tmp")
        os.chmod(self.tmp, 0o1777)
        adopt_orphans()

    def environment(self):
        names = ("PATH", "LANG", "CC", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CCACHE_DIR")
        # ccache: a fault that is tried again, and the tree without it, need no compiler.
        return {name: os.environ[name] for name in names if name in os.environ} | {
            "HOME": f"{self.tmp}/home", "TMPDIR": self.tmp, "srcdir": self.tree, "builddir": self.build,
            "CCACHE_DIR": os.environ.get("CCACHE_DIR", f"{self.cache}/ccache"),
            "ASAN_OPTIONS": "strict_string_checks=1:detect_stack_use_after_return=1:hard_rss_limit_mb=4096",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "PYTHONDONTWRITEBYTECODE": "1"}

    def walled(self, command, tmp):
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", WALLS, "sh", tmp, self.tree, *command]

    def run(self, command, seconds, tmp=None):
        """Runs it to its end, or for so long; nothing of it is left afterwards. tmp: what becomes /tmp of a program with a fault."""
        os.makedirs(f"{self.tmp}/home", exist_ok=True)
        environment = self.environment() | ({"TMPDIR": "/tmp", "HOME": "/tmp/home"} if tmp == self.tmp else {})
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(self.walled(command, tmp) if tmp else command, cwd=self.build if os.path.isdir(self.build) else self.tree,
                                       env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       start_new_session=True, preexec_fn=limit)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                kill_descendants()
                process.poll()
                self.empty()
            output.seek(max(0, output.seek(0, os.SEEK_END) - 100000))
            return Done(status, time.monotonic() - start, output.read().decode("utf-8", "replace"))

    def empty(self):
        for entry in os.scandir(self.tmp):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)

    def close(self):
        kill_descendants()
        shutil.rmtree(self.tmp, ignore_errors=True)
        self.lock.close()

    # ---- copy and build ----

    def synchronize(self):
        """Makes the copy the tree as it is; files that are the same keep their times, so that little is built."""
        known = tree_files()
        for path in known:
            source, target = f"{TOP}/{path}", f"{self.tree}/{path}"
            if not same(source, target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if os.path.lexists(target):
                    os.unlink(target)
                shutil.copy(source, target, follow_symlinks=False)
        kept = f"{self.cache}/files"
        if os.path.exists(kept):
            for path in set(read(kept).split("\n")) - set(known):
                if path and os.path.lexists(f"{self.tree}/{path}"):
                    os.unlink(f"{self.tree}/{path}")
        with open(kept, "w", encoding="utf-8") as file:
            file.write("\n".join(known))

    def make(self, *arguments):
        return self.run(["make", "-s", "-j", JOBS, *arguments], BUILD_SECONDS)

    def prepare(self):
        self.synchronize()
        if not os.path.exists(f"{self.build}/Makefile"):
            os.makedirs(self.build, exist_ok=True)
            compiler = os.environ.get("CC") or ("ccache gcc" if shutil.which("ccache") else "gcc")
            self.must(self.run(["sh", "-c", f"gcc -O2 -fPIC -c -DREACHED_FOLDER='\"{self.build}/reached\"' -o reached.o ../tests/mutate/reached.c && "
                                "ar rcs libreached.a reached.o && cd .. && autoreconf -fi && cd build && "
                                f"../configure -q CC='{compiler}' CFLAGS='-O1 -g -fsanitize-coverage=trace-pc' LIBS={self.build}/libreached.a "
                                "--enable-sanitizer=address,undefined --enable-werror"], BUILD_SECONDS))
        self.must(self.make("all"))

    def must(self, done):
        if not done.ok:
            raise Trouble(f"the tree without a fault does not build in {self.build}; the last lines:\n" + "\n".join(done.text.splitlines()[-15:]))

    def variable(self, name):
        """The words of a variable of the Makefile."""
        return self.run(["make", "-s", f"--eval=print-it:;@echo $({name})", "print-it"], 60).text.split()


def same(source, target):
    try:
        if os.path.islink(source) or os.path.islink(target):
            return os.readlink(source) == os.readlink(target)
        if os.stat(source).st_size != os.stat(target).st_size or os.stat(source).st_mode != os.stat(target).st_mode:
            return False
        with open(source, "rb") as one, open(target, "rb") as other:
            return one.read() == other.read()
    except OSError:
        return False

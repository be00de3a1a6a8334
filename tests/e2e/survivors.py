"""Programs that try to outlive their run or to harm the next one, and the program that looks for their traces."""

# For all attackers in Python: stay() leaves a process behind that has done its work when this returns.
TOOLS = r'''
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def others():
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != os.getpid()]

def attempt(work, *arguments):
    try:
        return work(*arguments)
    except Exception as refused:
        print(work, refused)

def stay(work=lambda: None, seconds=300):
    ready, done = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3):
                os.dup2(os.open("/dev/null", os.O_RDWR), fd)
            held = attempt(work)
            os.write(done, b"x")
            time.sleep(seconds)
        os._exit(0)
    os.close(done)
    os.read(ready, 1)
    os.close(ready)
'''

# What a run sees of the world, as JSON. Its own process, the entry program's and the template are left out.
PROBE = r'''
import builtins, ctypes, fcntl, json, os, resource, time

libc = ctypes.CDLL(None, use_errno=True)
own = open("/proc/self/cmdline", "rb").read()

def lines(path):
    try:
        with open(path, errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []

def number(*paths):
    return next((int(text[0]) for text in map(lines, paths) if text and text[0].isdigit()), 0)

def kilobytes(path, name):
    return sum(int(line.split()[1]) for line in lines(path) if line.startswith(name + ":"))

def memory():
    """That belongs to no process that may be here: not the cache of files, nor libraries that were loaded ahead."""
    stat = dict(line.split() for path in ("/sys/fs/cgroup/memory/memory.stat", "/sys/fs/cgroup/memory.stat") for line in lines(path))
    if not stat:
        return 0
    known = kilobytes("/proc/self/smaps_rollup", "Private_Dirty")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if pid == "1" or int(pid) == os.getppid() or is_template(pid):
            known += kilobytes(f"/proc/{pid}/status", "RssAnon")
    return sum(int(stat.get(name, 0)) for name in ("rss", "anon", "shmem")) - 1024 * known

def processes():
    """An interpreter that was started ahead, in whatever language, and did not fit, goes while the program runs: it has a moment.
    One that has lost its memory already has no command line."""
    end = time.monotonic() + 5
    while True:
        found = others()
        names = [said for said, _ in found]
        if time.monotonic() > end or len(names) == len(set(names)) and not any(not said or was_ahead(said) or state in "ZX" for said, state in found):
            return sorted(said.replace(b"\0", b" ").decode(errors="replace") + state.replace("R", "S") for said, state in found)
        time.sleep(0.05)

def others():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            said = open(f"/proc/{pid}/cmdline", "rb").read()
            state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if pid == "1" or int(pid) == os.getpid() or int(pid) == os.getppid() or was_ahead(said) and is_template(pid):
            continue
        found.append((said, state))
    return found

def was_ahead(said):
    """May it be an interpreter that was started before its program?"""
    return said == own or said.startswith(b"bun\0--preload=")

def is_template(pid):
    try:
        os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    return False

def tree(top):
    found = []
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            if not path.startswith((b"/tmp/script", b"/data/.script")):
                found.append([repr(path)[:200], oct(os.lstat(path).st_mode)])
        if len(found) > 100:
            break
    return sorted(found)[:100]

def kinds():
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append([fd, os.readlink(f"/proc/self/fd/{fd}").partition("[")[0]])
        except OSError:
            pass
    return sorted(one for one in found if not one[1].startswith("/proc/"))

def locked(path):
    for _ in range(100):  # the kernel closes a file that was on its way through sockets a moment after them
        try:
            with open(path, "r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return False
    return True

def queue():
    try:
        fd = libc.mq_open(b"/survivor", os.O_RDONLY)
    except AttributeError:
        return "unknown"
    if fd >= 0:
        os.close(fd)
    return fd >= 0

KEPT = ("Umask", "TracerPid", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
        "NoNewPrivs", "Seccomp", "Cpus_allowed", "Mems_allowed", "Threads")
space = os.statvfs("/tmp"), os.statvfs("/dev/shm")
print("VIEW" + json.dumps({
    "processes": processes(),
    "/tmp": tree("/tmp"),
    "/dev/shm": tree("/dev/shm"),
    "space": [one.f_blocks - one.f_bfree < 64 for one in space],
    "mqueues": [queue(), tree("/dev/mqueue")],
    "ipcs": {name: [line.split()[:3] for line in lines(f"/proc/sysvipc/{name}")[1:]] for name in ("shm", "sem", "msg")},
    "known ipcs": [libc.shmget(0x5ca1ab1e, 0, 0) >= 0, libc.semget(0x5ca1ab1e, 0, 0) >= 0, libc.msgget(0x5ca1ab1e, 0) >= 0],
    "limits": lines("/proc/self/limits"),
    "status": [line for line in lines("/proc/self/status") if line.startswith(tuple(name + ":" for name in KEPT))],
    "mounts": sorted(line.split()[1:3] for line in lines("/proc/self/mounts")),
    "environment": {name: value for name, value in os.environ.items() if name not in ("FILE_BASE_URL", "HOSTNAME")},
    "cwd": [os.getcwd(), os.getuid() == os.stat("/data").st_uid, os.getgroups() == [os.getgid()]],
    "hostname": len(os.uname().nodename),
    "processors": sorted(os.sched_getaffinity(0)),
    "scheduling": [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), libc.syscall(252, 1, 0)],
    "oom_score_adj": lines("/proc/self/oom_score_adj"),
    "parent": [lines(f"/proc/{os.getppid()}/oom_score_adj"), os.getpriority(os.PRIO_PROCESS, os.getppid()),
               sorted(os.sched_getaffinity(os.getppid())), list(resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE))],
    "personality": libc.personality(0xffffffff),
    "key": libc.syscall(249, b"user", b"survivor", None, 0) >= 0,
    "descriptors": kinds(),
    "abstract sockets": sorted(line.split()[-1] for line in lines("/proc/net/unix")[1:] if "@" in line),
    "ports": sorted(line.split()[1:4] for name in ("tcp", "tcp6", "udp", "udp6") for line in lines(f"/proc/net/{name}")[1:]),
    "locked": locked("/data/survivor.lock"),
    "hooked": hasattr(builtins, "survivor"),
    "pids": number("/sys/fs/cgroup/pids/pids.current", "/sys/fs/cgroup/pids.current"),
    "memory": memory(),
}))
'''

# A view's numbers may differ from those of a new container by this much.
TOLERANCE = {"pids": 3, "memory": 16 << 20}

# (what it does, its language, code). Attackers in Python have TOOLS in front.
ATTACKERS = (
    ("forks twice and sleeps", "python", "stay()"),
    ("sleeps in a session of its own", "bash", "setsid sleep 300 >/dev/null 2>&1 &"),
    ("ignores hang-ups", "bash", "nohup sleep 300 >/dev/null 2>&1 & disown"),
    ("becomes a subreaper with children", "python", "stay(lambda: (libc.prctl(36, 1), os.fork() or time.sleep(300)))"),
    ("stops itself", "bash", "setsid sh -c 'kill -STOP $$' >/dev/null 2>&1 & sleep 0.3"),
    ("ignores and blocks all signals", "python", """
def deaf():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.Signals)
stay(deaf)"""),
    ("goes on from process to process", "python", """
def hop():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        time.sleep(0.02)
stay(lambda: os.fork() or hop())"""),
    ("leaves children that are not reaped", "python", "stay(lambda: [os.fork() or os._exit(0) for _ in range(20)])"),
    ("calls itself the entry program", "bash", "(exec -a /usr/local/bin/entry sleep 300) >/dev/null 2>&1 &"),
    ("calls itself a kernel thread", "python", "stay(lambda: libc.prctl(15, b'kworker/0:1'))"),
    ("fills its process limit with sleepers", "python", """
def fill():
    while True:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
stay(fill)"""),
    ("is a fork bomb", "bash", "bomb() { bomb | bomb & }; (bomb) >/dev/null 2>&1; sleep 0.3"),
    ("leaves threads that compute", "python", """
import threading
def compute():
    while True:
        time.monotonic()
stay(lambda: [threading.Thread(target=compute, daemon=True).start() for _ in range(4)], seconds=60)"""),
    ("leaves a folder of mode 0 in /tmp", "bash", "mkdir -p /tmp/shut/in && echo x >/tmp/shut/in/f && chmod 0 /tmp/shut/in/f /tmp/shut/in /tmp/shut"),
    ("leaves 300 folders in one another", "python", """
os.chdir("/tmp")
for _ in range(300):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").close()"""),
    ("leaves files with strange names", "python", r"""
for name in (b"-rf", b"\n", b"\xff\xfe", b" ", b".hidden", b"*", b"x" * 255):
    open(b"/tmp/" + name, "w").close()"""),
    ("leaves a FIFO, a socket and links in /tmp", "python", """
os.mkfifo("/tmp/fifo")
socket.socket(socket.AF_UNIX).bind("/tmp/socket")
os.symlink("/data", "/tmp/link")
os.symlink("loop", "/tmp/loop")"""),
    ("fills /tmp", "bash", "head -c 1g /dev/zero >/tmp/full 2>/dev/null; true"),
    ("leaves 5,000 files in /tmp", "python", "[open(f'/tmp/{n}', 'w').close() for n in range(5000)]"),
    ("leaves a file with the sticky and set-id bits", "bash", "cp /bin/true /tmp/tool && chmod 7777 /tmp/tool; mkdir /tmp/s && chmod 7000 /tmp/s"),
    ("leaves a file of mode 0 in /dev/shm", "bash", "echo x >/dev/shm/shut && chmod 0 /dev/shm/shut"),
    ("fills /dev/shm", "bash", "head -c 1g /dev/zero >/dev/shm/full 2>/dev/null; true"),
    ("leaves a POSIX message queue", "python", "libc.mq_open(b'/survivor', os.O_CREAT | os.O_RDWR, 0o666, None)"),
    ("leaves a POSIX semaphore", "python", "libc.sem_open(b'/survivor', os.O_CREAT, 0o666, 1)"),
    ("leaves System V shared memory", "python", "libc.shmget(0x5ca1ab1e, 8 << 20, 0o1666)"),
    ("leaves System V semaphores", "python", "libc.semget(0x5ca1ab1e, 3, 0o1666)"),
    ("leaves a System V message", "python", """
queue = libc.msgget(0x5ca1ab1e, 0o1666)
libc.msgsnd(queue, ctypes.create_string_buffer(struct.pack("l", 1) + b"x" * 64), 64, 0)"""),
    ("holds a memfd of 32 MB", "python", "stay(lambda: os.write(os.memfd_create('kept'), bytes(32 << 20)))"),
    ("holds 150 MB of memory", "python", "stay(lambda: bytearray(b'x') * (150 << 20))"),
    ("runs out of memory", "python", "held = [bytearray(b'x') * (16 << 20) for _ in range(64)]"),
    ("holds a lock on a file of /data", "python", """
def lock():
    file = open("/data/survivor.lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file
stay(lock)"""),
    ("maps and holds files of /data", "python", """
def hold():
    file = open("/data/held", "w+b")
    file.truncate(1 << 20)
    return file, mmap.mmap(file.fileno(), 0), os.open("/data", os.O_RDONLY)
stay(hold)"""),
    ("lowers the limits of every process", "python", """
for pid in others():
    attempt(resource.prlimit, pid, resource.RLIMIT_NOFILE, (16, 16))
    attempt(resource.prlimit, pid, resource.RLIMIT_FSIZE, (1, 1))"""),
    ("binds every process to one processor", "python", "[attempt(os.sched_setaffinity, pid, {min(os.sched_getaffinity(0))}) for pid in others()]"),
    ("makes every process nice", "python", "[attempt(os.setpriority, os.PRIO_PROCESS, pid, 19) for pid in others()]"),
    ("gives every process idle disk priority", "python", "[libc.syscall(251, 1, pid, 3 << 13) for pid in others()]"),
    ("has every process scheduled when idle only", "python", "[attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0)) for pid in others()]"),
    ("has every process killed first when memory is short", "python", """
for pid in others():
    attempt(lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"))"""),
    ("stops every process", "python", "[attempt(os.kill, pid, signal.SIGSTOP) for pid in others() if pid != os.getppid()]"),
    ("kills every process", "python", "[attempt(os.kill, pid, signal.SIGKILL) for pid in others() if pid != os.getppid()]"),
    ("sends every process real-time signals", "python", "[attempt(os.kill, pid, number) for pid in others() if pid not in (1, os.getppid()) for number in (34, 40, 64)]"),
    ("traces every process", "python", "stay(lambda: [libc.ptrace(0x4206, pid, None, None) for pid in others()])"),
    ("writes into the memory of every process", "python", """
for pid in others():
    def write():
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(int(open(f"/proc/{pid}/maps").readline().split("-")[0], 16))
            memory.write(bytes(4096))
    if pid != os.getppid():
        attempt(write)"""),
    ("leaves keys in the keyrings", "python", "[libc.syscall(248, b'user', b'survivor', b'x', 1, ring) for ring in range(-5, 0)]"),
    ("watches /data and /tmp", "python", """
def watch():
    fd = libc.inotify_init()
    return [libc.inotify_add_watch(fd, path, 0xfff) for path in (b"/data", b"/tmp")]
stay(watch)"""),
    ("listens on an abstract socket", "python", """
def listen():
    server = socket.socket(socket.AF_UNIX)
    server.bind("\\0survivor")
    server.listen()
    return server
stay(listen)"""),
    ("listens on TCP ports", "python", "stay(lambda: [socket.create_server(('127.0.0.1', port)) for port in (1234, 8080)])"),
    ("binds a UDP port", "python", """
def bind():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 5353))
    return server
stay(bind)"""),
    ("asks for namespaces of its own", "python", """
def unshare():
    for flag in (0x10000000, 0x10000080, 0x10020000, 0x20000000, 0x40000000, 0x08000000):
        libc.unshare(flag)
    libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
    libc.sethostname(b"survivor", 8)
stay(unshare)"""),
    ("holds a userfaultfd, an io_uring, an eventfd and a timer", "python", """
stay(lambda: [libc.syscall(323, 0), libc.syscall(425, 8, ctypes.create_string_buffer(120)), libc.eventfd(1, 0), libc.timerfd_create(1, 0)])"""),
    ("changes its environment, umask, directory, limits and personality", "python", """
os.environ["SURVIVOR"] = "1"
libc.setenv(b"LD_PRELOAD", b"/data/evil.so", 1)
os.umask(0)
os.chdir("/tmp")
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
libc.personality(0x0040000)"""),
    ("leaves what Python reads when it starts in /data", "python", """
for name in ("sitecustomize.py", "usercustomize.py", "survivor.pth"):
    with open("/data/" + name, "w") as file:
        file.write("import builtins; builtins.survivor = 1\\n")
os.makedirs("/data/.packages/python", exist_ok=True)
with open("/data/.packages/python/survivor.pth", "w") as file:
    file.write("import builtins; builtins.survivor = 1\\n")"""),
    ("leaves what Python reads when it starts in its home", "python", """
import site
os.makedirs(site.getusersitepackages())
for name in ("usercustomize.py", "survivor.pth"):
    with open(site.getusersitepackages() + "/" + name, "w") as file:
        file.write("import builtins; builtins.survivor = 1\\n")"""),
    ("leaves what shells read when they start", "bash", r"""
for file in ~/.bashrc ~/.profile ~/.bash_profile ~/.inputrc; do echo "export SURVIVOR=1; sleep 300 &" >"$file"; done"""),
    ("leaves what Bun reads when it starts", "typescript", """
const { mkdirSync, writeFileSync } = require("node:fs");
for (const folder of ["/data", "/tmp"]) {
    for (const name of ["/bunfig.toml", "/.bunfig.toml"]) writeFileSync(folder + name, 'preload = ["./survivor.ts"]\\n');
    writeFileSync(folder + "/survivor.ts", "(globalThis as any).survivor = 1;\\n");
}"""),
    ("spawns a process that is detached from Bun", "typescript", """
require("node:child_process").spawn("sleep", ["300"], { detached: true, stdio: "ignore" }).unref();
process.exit(0);"""),
    ("replaces the entry program, the interpreter and its hooks", "python", """
for path in ("/usr/local/bin/entry", "/sandbox/entry", sys.executable, "/usr/local/lib/sandbox/warm.py", "/etc/ld.so.preload", "/etc/passwd"):
    attempt(os.unlink, path)
    attempt(lambda: open(path, "w").write("evil"))
    attempt(os.symlink, "/tmp/script.py", "/tmp/next.py")"""),
    ("leaves 100,000 files in /tmp", "python", "[os.close(os.open(f'/tmp/{n}', os.O_CREAT)) for n in range(100000)]"),
    ("leaves 3,000 folders in one another, shut at the top, with files", "python", """
os.mkdir("/tmp/0")
os.chdir("/tmp/0")
for n in range(3000):
    os.mkdir("0")
    os.close(os.open("file", os.O_CREAT))
    os.chdir("0")
os.chmod("/tmp/0/0", 0)
os.chmod("/tmp/0", 0)"""),
    ("leaves connections that wait for their end", "python", """
server = socket.create_server(("127.0.0.1", 0))
for _ in range(50):
    client = socket.create_connection(server.getsockname())
    accepted = server.accept()[0]
    client.close()
    accepted.close()"""),
    ("leaves sockets on their way through each other, with a lock and memory", "python", """
file = open("/data/survivor.lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
kept = os.memfd_create("kept")
os.write(kept, bytes(32 << 20))
for _ in range(50):
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [one.fileno(), other.fileno(), file.fileno(), kept])
    socket.send_fds(other, [b"x"], [one.fileno(), other.fileno()])"""),
    ("has the children of every process begin with other priorities", "python", """
for pid in others():
    attempt(os.sched_setscheduler, pid, os.SCHED_BATCH | 0x40000000, os.sched_param(0))"""),
    ("bounds the processor time and the signals of every process", "python", """
for pid in others():
    attempt(resource.prlimit, pid, resource.RLIMIT_CPU, (10**6, 10**6))
    attempt(resource.prlimit, pid, resource.RLIMIT_SIGPENDING, (0, 0))"""),
    ("stops every process for a while", "python", """
for number in (signal.SIGSTOP, signal.SIGCONT):
    [attempt(os.kill, pid, number) for pid in others() if pid != os.getppid()]"""),
    ("forks and kills what else there is, in many sessions", "python", """
def war():
    while True:
        os.fork() or os.setsid()
        for pid in others():
            if pid not in (1, os.getppid()):
                attempt(os.kill, pid, signal.SIGCONT)
sys.stdout = sys.stderr = open("/dev/null", "w")
stay(lambda: [os.fork() or attempt(war) for _ in range(4)])
time.sleep(0.3)"""),
    ("puts a folder in the place of its own code", "python", """
for name in ("script", "script.py", "script.sh", "script.ts"):
    attempt(os.unlink, "/tmp/" + name)
    attempt(os.makedirs, f"/tmp/{name}/x")
os.makedirs("/tmp/other.py/x")"""),
    ("runs out of memory in Bun", "typescript", "const held = []; while (true) held.push(new Uint8Array(16 << 20).fill(1));"),
    ("has a child that runs out of memory, and says nothing of it", "bash", "head -c 1g /dev/zero | tail >/dev/null; exit 0"),
    ("reaches its time limit with children in Bun", "typescript", """
require("node:child_process").spawn("setsid", ["sleep", "300"], { detached: true, stdio: "ignore" }).unref();
require("node:fs").writeFileSync("/tmp/left", "x");
while (true);"""),
    ("reaches its time limit, deaf to signals", "bash", """
trap '' HUP INT TERM; echo x >/tmp/left; mkdir -m 0 /dev/shm/left
(trap '' TERM; setsid sleep 300) >/dev/null 2>&1 &
while :; do :; done"""),
    ("holds a lock in a shell", "bash", "exec 9>/data/survivor.lock; flock 9; setsid sleep 300 >/dev/null 2>&1 &"),
    ("stops and slows every process from Bun", "typescript", """
const os = require("node:os");
for (const pid of require("node:fs").readdirSync("/proc").map(Number).filter((pid) => pid > 1 && pid !== process.pid))
    for (const harm of [() => os.setPriority(pid, 19), () => process.kill(pid, "SIGSTOP")])
        try { harm(); } catch {}"""),
    ("leaves shared memory and semaphores by way of Bun's calls of C", "typescript", """
const { symbols } = require("bun:ffi").dlopen("libc.so.6", {
    shmget: { args: ["i32", "u64", "i32"], returns: "i32" },
    semget: { args: ["i32", "i32", "i32"], returns: "i32" },
});
console.log(symbols.shmget(0x5ca1ab1e, 8 << 20, 0o1666), symbols.semget(0x5ca1ab1e, 3, 0o1666));"""),
    ("listens and works on in Bun's threads", "typescript", """
const { Worker } = require("node:worker_threads");
require("node:net").createServer().listen("\\0survivor");
require("node:fs").mkdirSync("/tmp/shut/in", { recursive: true });
new Worker("while (true);", { eval: true });
setTimeout(() => process.exit(0), 300);"""),
)

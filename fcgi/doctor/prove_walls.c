/* The programs that "sandcgi prove" runs, in a table. */
#include "config.h"

#include "fcgi/doctor/prove_walls.h"

#include "common/base/auto.h"
#include "common/rpc/json.h"

#define PROGRAM_MS 20000
#define MEMORY_MAX (2048ull * 1024 * 1024) /* more is not taken from a server at work */
#define PIDS_MAX   1024

#define PY "import os, sys\nprint('begun', flush=True)\n"
#define STATUS                                                                                     \
    "s = dict(line.rstrip().split(':\\t', 1) for line in open('/proc/self/status')"                \
    " if ':\\t' in line)\n"

static bool memory_is_little(const struct settings *s, const json_t *status)
{
    (void)status;
    return s->container.memory_bytes <= MEMORY_MAX;
}

static bool pids_are_few(const struct settings *s, const json_t *status)
{
    (void)status;
    return s->container.pids <= PIDS_MAX;
}

static bool kernel_has_quotas(const json_t *status)
{
    return json_get_bool(json_object_get(status, "walls"), "userQuotas", 0);
}

/* Without a quota of the kernel it would fill the disk, and so it would one that is nearly full. */
static bool quota_can_be_tried(const struct settings *s, const json_t *status)
{
    const json_int_t room = json_get_integer(json_object_get(status, "disk"), "freeBytes", 0);

    return kernel_has_quotas(status) && s->bounds.bytes > 0 && room > 0 &&
           s->bounds.bytes < (uint64_t)room / 2;
}

static bool network_is_given(const struct settings *s, const json_t *status)
{
    return s->network != NETWORK_NONE &&
           !json_get_string(json_object_get(status, "network"), "lastError");
}

const struct wall walls[] = {
    {"rights",
     PY STATUS "for name in 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb':\n"
               "    if int(s[name], 16): print(name, s[name])\n"
               "if s['NoNewPrivs'] != '1': print('new privileges')\n"
               "if 0 in (os.getuid(), os.geteuid(), os.getgid()): print('root')\n",
     PROGRAM_MS, "ok", NULL, false, "programs are not root, have no capability and gain none",
     "programs have rights that they must not have", ""},
    {"namespaces",
     PY "here = os.environ['PROVE_HERE'].split()\n"
        "for name in 'cgroup', 'ipc', 'mnt', 'net', 'pid', 'uts':\n"
        "    if os.readlink('/proc/self/ns/' + name) in here: print(name)\n",
     PROGRAM_MS, "ok", NULL, false,
     "programs see no process, mount, interface, queue or name of this machine",
     "programs share namespaces with this machine",
     "for cgroup alone: boot with cgroup v2, or use Docker 20.10 or later"},
    {"engine-filter",
     PY STATUS "if 'Seccomp_filters' not in s: sys.exit('the kernel does not count filters')\n"
               "if int(s['Seccomp_filters']) < 2: print(s['Seccomp_filters'])\n",
     PROGRAM_MS, "ok", NULL, false, "the engine has a filter of system calls, and we another",
     "one of two filters of system calls is missing, the engine's or ours; there are",
     "take seccomp=unconfined out of the engine's configuration"},
    {"calls",
     PY "import ctypes, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for name, *what in (('vsock', 40, 1, 0), ('packets', 17, 3, 0), ('keys', 15, 3, 2),"
        " ('crypto', 38, 5, 0), ('netlink', 16, 3, 16)):\n"
        "    if libc.socket(*what) >= 0: print(name)\n"
        "for name, flag in (('user', 1 << 28), ('mount', 1 << 17), ('network', 1 << 30)):\n"
        "    if libc.unshare(flag) == 0: print(name, 'namespace')\n"
        "arm = platform.machine() == 'aarch64'\n"
        "for name, number in (('io_uring', 425), ('open_tree', 428), ('fsopen', 430),"
        " ('keyctl', 219 if arm else 250), ('bpf', 280 if arm else 321),"
        " ('userfaultfd', 282 if arm else 323), ('perf', 241 if arm else 298)):\n"
        "    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 5) >= 0"
        " or ctypes.get_errno() not in (1, 38): print(name)\n",
     PROGRAM_MS, "ok", NULL, false,
     "vsock, packets, io_uring, user namespaces, keyrings, bpf and their like are refused",
     "the kernel answers calls that must be refused", ""},
    {"lsm",
     PY "try: label = open('/proc/self/attr/current').read().strip('\\0\\n ')\n"
        "except OSError: label = ''\n"
        "if not label.endswith('(enforce)') and not any(t in label for t in (':container_t:',"
        " ':container_kvm_t:')): print(label or 'none')\n",
     PROGRAM_MS, "ok", NULL, false, "AppArmor or SELinux confines programs",
     "neither AppArmor nor SELinux confines programs; their profile",
     "switch one of them on in the kernel and in the engine"},
    {"files",
     PY "import stat\n"
        "for line in open('/proc/self/mountinfo'):\n"
        "    where, how = line.split()[4:6]\n"
        "    kind = line.split(' - ')[1].split()[0]\n"
        "    if kind in ('tmpfs', 'mqueue', 'devpts') or where == '/data': continue\n"
        "    if (os.access(where, os.W_OK) and not stat.S_ISCHR(os.stat(where).st_mode)"
        " or where == '/' and 'rw' in how.split(',')): print(where, 'is writable')\n"
        "def opens(path, how):\n"
        "    try:\n"
        "        with open(path, how) as f: return how == 'ab' or f.read(1) != b''\n"
        "    except OSError: return False\n"
        "for path, how in (('/proc/kcore', 'rb'), ('/dev/mem', 'rb'), ('/dev/kmsg', 'rb'),"
        " ('/proc/sysrq-trigger', 'ab'), ('/proc/sys/kernel/core_pattern', 'ab')):\n"
        "    if opens(path, how): print(path)\n"
        "for path in '/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock':\n"
        "    if os.path.exists(path): print(path)\n",
     PROGRAM_MS, "ok", NULL, false,
     "programs write to /data and to memory alone, and have no file of the machine",
     "programs reach files that they must not reach", ""},
    {"entry",
     PY "import ctypes\n"
        "for name in 'environ', 'maps', 'mem':\n"
        "    try:\n"
        "        if open('/proc/1/' + name, 'rb').read(1): print(name)\n"
        "    except OSError: pass\n"
        "if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0: print('ptrace')\n",
     PROGRAM_MS, "ok", NULL, false,
     "the entry program, which reports to the server, is out of reach",
     "a program reaches the entry program and could forge its reports", ""},
    {"memory",
     PY "size = int(os.environ['PROVE_MEMORY']) + (64 << 20)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    taken = bytearray(size)\n"
        "    taken[::4096] = b'1' * len(range(0, size, 4096))\n"
        "    os._exit(9)\n"
        "end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "if end == 9: print(size, 'bytes')\n"
        "elif end != -9: sys.exit(f'it ended with {end}')\n",
     PROGRAM_MS, "ok out_of_memory", memory_is_little, false,
     "a program that takes more than SANDBOX_MEMORY is ended",
     "a program took more than SANDBOX_MEMORY",
     "give the engine cgroup v2, and its account delegation by systemd"},
    {"processes",
     PY "import signal\n"
        "most = int(os.environ['PROVE_PIDS']) + 16\n"
        "try:\n"
        "    for n in range(most):\n"
        "        if os.fork() == 0: signal.pause()\n"
        "    print(most)\n"
        "except BlockingIOError: pass\n"
        "os._exit(0)\n",
     PROGRAM_MS, "ok", pids_are_few, false, "a fork bomb stops at SANDBOX_PIDS",
     "a program has more processes than SANDBOX_PIDS", "give the engine the cgroup pids"},
    {"time",
     PY "import signal, time\n"
        "for n in range(1, 32):\n"
        "    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\n"
        "if os.fork() == 0: os.setsid()\n"
        "time.sleep(15)\n"
        "print('it went on')\n",
     1000, "timeout", NULL, false, "a program that ignores signals ends at its time limit",
     "a program outlives its time limit", ""},
    {"quota",
     PY "import errno, resource\n"
        "left = int(os.environ['PROVE_QUOTA']) + (1 << 20)\n"
        "most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]\n"
        "try:\n"
        "    while left > 0:\n"
        "        with open(f'/data/{left}', 'wb') as f: os.posix_fallocate(f.fileno(), 0,"
        " min(left, most))\n"
        "        left -= most\n"
        "    print(os.environ['PROVE_QUOTA'], 'bytes')\n"
        "except OSError as e:\n"
        "    if e.errno != errno.EDQUOT: sys.exit(str(e))\n"
        "finally:\n"
        "    for name in os.listdir('/data'): os.unlink('/data/' + name)\n",
     PROGRAM_MS, "ok", quota_can_be_tried, false,
     "files that are begun at once end at SANDBOX_QUOTA", "a program took more than SANDBOX_QUOTA",
     ""},
    {"no-network",
     PY "import socket\n"
        "for family, host in ((2, '1.1.1.1'), (2, '169.254.169.254'), (10, '2606:4700::1111')):\n"
        "    try: socket.socket(family, socket.SOCK_DGRAM).connect((host, 53)); print(host)\n"
        "    except OSError: pass\n",
     PROGRAM_MS, "ok", NULL, false, "without network:true there is none",
     "a program that has no network has a way to", ""},
    {"near",
     PY "import errno, socket, struct\n"
        "hosts = ['169.254.169.254', '10.0.0.1', '172.17.0.1', '192.168.0.1', '192.168.1.1']\n"
        "for line in list(open('/proc/net/route'))[1:]:\n"
        "    gateway = int(line.split()[2], 16)\n"
        "    if gateway: hosts.append(socket.inet_ntoa(struct.pack('<I', gateway)))\n"
        "for host in hosts:\n"
        "    for port in 22, 80, 443:\n"
        "        with socket.socket() as s:\n"
        "            s.settimeout(0.5)\n"
        "            if s.connect_ex((host, port)) in (0, errno.ECONNREFUSED): print(host, port)\n",
     PROGRAM_MS, "ok", network_is_given, true,
     "a program with a network reaches no private address, no metadata and not this machine",
     "a program with a network reaches what is near", ""},
};
const size_t walls_n = ARRAY_LEN(walls);

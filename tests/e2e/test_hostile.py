"""Programs and callers that mean harm (numbers: the list of hostile cases)."""
import json
import os
import re
import secrets
import stat
import threading
import time

import engine
import fcgi
import logs
import network
import procs
import runs
import sites
import warm
from harness import IS_ROOT, TOP, Skip, check, contains, equal, in_time, test, wait_until
from mcp import end_run

# What an engine fills in by its version or configuration; everything else that is not in the golden copy must be empty.
BOMB = 8  # seconds that a fork bomb may run
ENGINES_OWN = {"ConsoleSize", "Isolation", "MaskedPaths", "Mounts", "ReadonlyPaths", "RestartPolicy", "Runtime"}


def _live(client, code="sleep 60", language="bash", **arguments):
    """(container as inspected while its program runs, connection of the call)."""
    site = sites.shared()
    before = _ids(site)
    connection = client.begin_cancellable(code, language, timeout=60, **arguments)
    found = wait_until(lambda: [c["Id"] for c in site.containers() if c["State"] == "running" and c["Id"] not in before], 15, "a running container")
    return engine.inspect(found[0]), connection


def _ids(site):
    return {one["Id"] for one in site.containers()}


def _gone(container, seconds):
    wait_until(lambda: container not in _ids(sites.shared()), seconds, "the container is gone")


def _confined_workers(site):
    """Those that stay, once each has given up its rights: a new one does so first of all."""
    return wait_until(lambda: all(map(procs.is_confined, found := site.settled_workers())) and found, 10, "each worker is confined")


def _run_gone(run_id, seconds):
    wait_until(lambda: not warm.container_of(sites.shared(), run_id), seconds, "its container is gone")


@test("H-12: the container's shape is the golden copy, nothing more and nothing less (H-38)", core=True)
def _():
    site = sites.shared()
    shape, connection = _live(sites.client())
    connection.close()
    with open(f"{TOP}/tests/e2e/golden/container.json", encoding="utf-8") as file:
        golden = json.load(file)
    host = shape["HostConfig"]
    for name, want in golden["HostConfig"].items():
        equal(host.get(name), want, f"HostConfig.{name}")
    for name, value in host.items():
        if name not in golden["HostConfig"] and name not in ENGINES_OWN:
            check(value in (None, 0, "", False, [], {}, -1), f"HostConfig.{name} = {value!r} is not in the golden copy")
    for name, want in golden["Config"].items():
        equal(shape["Config"].get(name), want, f"Config.{name}")
    check(all(sites.is_sandbox_user(uid) for uid in shape["Config"]["User"].split(":")), shape["Config"]["User"])
    check(host["MaskedPaths"] and host["ReadonlyPaths"], "the engine's masked paths")
    equal([(m["Type"], re.sub(r"^.*/[0-9a-f]{64}$", "SANDBOX", re.sub(r"^.*/[0-9a-f]{16}/", "HELPERS/", m["Source"])), m["Target"],
            m.get("ReadOnly", False)) for m in host["Mounts"]],
          [("bind", "SANDBOX", "/data", False), ("bind", "HELPERS/hosts", "/etc/hosts", True)])
    equal(sorted(m["Destination"] for m in shape["Mounts"]), ["/data", "/etc/hosts"])
    check(host["RestartPolicy"]["Name"] in ("", "no"), "never restarted")
    labels = shape["Config"]["Labels"]
    equal(labels["sandbox.managed"], "true")
    equal(labels["sandbox.instance"], site.instance)
    check(time.time() < int(labels["sandbox.deadline"]) < time.time() + 120, "sandbox.deadline")
    check(not any("FILE_SECRET" in one or site.token in one for one in shape["Config"]["Env"]), "a secret in Env")
    _gone(shape["Id"], 10)


@test("H-12: inside there are no rights: no capability, no new privileges, seccomp, nothing writable but /data and /tmp", core=True)
def _():
    result = sites.client().run(r"""
grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
for d in / /etc /usr /root /var /opt /home /mnt /run /dev /sys /proc/sys/kernel; do touch $d/x 2>/dev/null && echo "writable: $d"; done
touch /tmp/x /data/x && echo both
mount -t tmpfs x /mnt 2>/dev/null && echo mounted
unshare -U true 2>/dev/null && echo unshared
ulimit -c; ulimit -n
echo x >/proc/sys/kernel/hostname 2>/dev/null && echo hostname
mknod /tmp/null c 1 3 2>/dev/null && echo mknod
chmod u+s /tmp/x 2>/dev/null; ls /var/run/docker.sock /run/docker.sock 2>/dev/null
cat /proc/kcore 2>/dev/null | head -c 1; dmesg >/dev/null 2>&1 && echo dmesg
exit 0
""", "bash")
    lines = result["stdout"].split("\n")
    for line in ("CapEff:0000000000000000", "CapPrm:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1", "Seccomp:2"):
        check(line in lines, f"{line} is missing: {lines}")
    equal(lines[5:], ["both", "0", "1024", ""])
    raw = sites.new_conversation(network.site().client()).run("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", network=True)
    contains(raw["stderr"], "PermissionError")


# What socket() says for a Unix, a vsock and a packet socket, and io_uring_setup: in each language.
CALLS = {
    "python": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print([libc.socket(family, 1, 0) >= 0 for family in (1, 2, 40, 17)], libc.syscall(425, 8, None), ctypes.get_errno())
""",
    "typescript": """
import { dlopen } from "bun:ffi";
const { symbols: libc } = dlopen("libc.so.6", { socket: { args: ["i32", "i32", "i32"], returns: "i32" },
                                                syscall: { args: ["i64", "i64", "ptr"], returns: "i64" },
                                                __errno_location: { args: [], returns: "ptr" } });
import { read } from "bun:ffi";
const opens = [1, 2, 40, 17].map(family => libc.socket(family, 1, 0) >= 0 ? "True" : "False").join(", ");
const ring = libc.syscall(425, 8, null);
console.log(`[${opens}] ${ring} ${read.i32(libc.__errno_location(), 0)}`);
""",
}
CALLS["bash"] = f"python3 - <<'END'{CALLS['python']}END"


@test("H-73: the kernel's calls are the same few in each language, in sessions and commands: no vsock, no packets, no io_uring")
def _():
    client, said = sites.client(), "[True, True, False, False] -1 38"
    for language, code in CALLS.items():
        equal(client.run(code, language)["stdout"].strip(), said, language)
    equal(client.run(CALLS["python"], "python", session=True)["stdout"].strip(), said, "a session")
    sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]
    equal(client.structured("exec", {"sandboxId": sandbox, "command": CALLS["bash"]})["results"][0]["stdout"].strip(), said, "a command")


@test("H-77: the name of a container, which others can ask for, tells no run")
def _():
    shape, connection = _live(sites.client())
    connection.close()
    run_id = shape["Config"]["Labels"]["sandbox.run"]
    check(re.fullmatch("/?sandcgi-[0-9a-f]{16}", shape["Name"]) and shape["Name"].split("-")[1] not in run_id, f"{shape['Name']} of {run_id}")


@test("H-45: no word of the code is refused, and what it says is done: the container is the bound, not a pattern")
def _():
    code = """import ctypes, os, pickle, shutil, socket, subprocess, sys
shutil.rmtree("/etc", ignore_errors=True)
os.system("rm -rf --no-preserve-root /usr/bin/env 2>/dev/null; curl http://169.254.169.254/ 2>/dev/null")
print(eval("6*7"), subprocess.run("echo shell", shell=True, capture_output=True, text=True).stdout.strip(), os.path.exists("/etc/passwd"))"""
    result = sites.client().run(code)
    equal((result["status"], result["stdout"]), ("ok", "42 shell True\n"))


@test(f"H-12: fork bombs are contained for the {BOMB} s that they have, a neighbour runs meanwhile (H-57)", timeout=90)
def _():
    results, threads = [], []
    start = time.monotonic()
    for code, language in ((":(){ :|:& };:; sleep 60", "bash"),
                           ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "python")):
        def explode(client=sites.client(), code=code, language=language):
            results.append(client.run(code, language, timeout=BOMB))
        threads.append(threading.Thread(target=explode))
        threads[-1].start()
    time.sleep(1)  # they spread
    equal(sites.client().run("print('alive')")["stdout"], "alive\n")
    check(all(one.is_alive() for one in threads), "the neighbour waited for the bombs")
    for one in threads:
        one.join()
    in_time(start, BOMB + 5, "the bombs end")
    equal(len(results), 2, "bombs that ended")
    for result in results:
        check(result["status"] in ("timeout", "error", "out_of_memory"), result["status"])
        _run_gone(result["runId"], 10)


@test("H-12: memory: swap is no way out, a hog by children is ended, the entry program survives it", timeout=90, core=True)
def _():
    client = sites.client()
    result = client.run("""
import os, time
for _ in range(8):
    if os.fork() == 0:
        a = bytearray(64 << 20)
        for i in range(0, len(a), 4096): a[i] = 1
        time.sleep(6)
        os._exit(0)
while True:
    print(os.wait()[1], flush=True)
""", timeout=15)
    check(result["status"] in ("out_of_memory", "timeout", "error"), result["status"])
    contains(result["stdout"], "9\n")
    result = client.run("head -c 200M /dev/zero >/tmp/x; echo; ls -s /tmp/x; head -c 300M /dev/zero | tail", "bash")
    check("No space left" in result["stderr"], result["stderr"][-300:])


@test("H-12: a file over SANDBOX_FSIZE ends its writer, too many open files are refused", core=True)
def _():
    site = sites.with_settings(SANDBOX_FSIZE="16m", SANDBOX_NOFILE="64")
    client = sites.new_conversation(site.client())
    result = client.run("head -c 100M /dev/zero >big; echo exit $?; stat -c %s big", "bash")
    contains(result["stdout"], str(16 << 20))
    check("exit 0" not in result["stdout"], "written in full")
    result = client.run("f = []\nfor i in range(100): f.append(open('/dev/null'))")
    contains(result["stderr"], "Too many open files")


def _plain():
    """A server whose memory can be looked at."""
    return sites.with_settings(binary=sites.plain_binary(), SANDBOX_OUTPUT_MAX="0", SANDBOX_CPUS="2", SANDBOX_TIMEOUT_MAX="500s", SANDBOX_WAIT_MAX="500s")


@test("a gigabyte of output leaves the worker's and the run child's memory flat (H-11, H-52)", timeout=240)
def _():
    site = _plain()
    client = sites.new_conversation(site.client(timeout=530))
    client.run("true", "bash")
    before = max(map(procs.private_memory, site.workers()))
    results, workers, children = [], [], []
    thread = threading.Thread(target=lambda: results.append(
        client.run("yes 0123456789012345678901234567890123456789 | head -c 1G", "bash", timeout=500, waitMs=500000)))
    thread.start()
    while thread.is_alive():
        workers.append(max(map(procs.private_memory, site.workers()), default=0))
        children.append(max(map(procs.private_memory, site.run_children()), default=0))
        time.sleep(0.2)
    thread.join()
    equal((results[0]["status"], results[0]["truncation"]["stdout"]["total"]), ("ok", 1 << 30))
    check(max(workers) < before + (8 << 20), f"a worker grew from {before} to {max(workers)} bytes")
    check(max(children) < 24 << 20, f"a run child used {max(children)} bytes")
    half = len(children) // 2
    check(max(children[half:-1]) < max(children[1:half]) + (2 << 20), "a run child grew while the output went on")


@test("H-25: SIGTERM ignored, children in sessions of their own that hold the output: answered in time, nothing left", core=True)
def _():
    client = sites.client()
    code = """
import os, signal, time
for s in range(1, 32):
    if s not in (9, 19): signal.signal(s, signal.SIG_IGN)
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(600)
        time.sleep(600)
print('started', flush=True)
time.sleep(600)
"""
    start = time.monotonic()
    result = client.run(code, timeout=2)
    in_time(start, 5, "answered")
    equal((result["status"], result["stdout"]), ("timeout", "started\n"))
    _run_gone(result["runId"], 5)


@test("H-63: a program that ends at once while its children hold the output is answered at once")
def _():
    client = sites.client()
    start = time.monotonic()
    result = client.run("setsid sleep 300 & setsid sh -c 'trap \"\" TERM; sleep 300' & echo done", "bash")
    in_time(start, 4, "answered")
    equal((result["status"], result["stdout"]), ("ok", "done\n"))


@test("a program gains nothing by attacking the entry program: forged frames, signals, ptrace, its descriptors", core=True)
def _():
    client = sites.client()
    code = r"""
import ctypes, os, signal, struct, sys
report = b'{"exitCode":0,"signal":0,"cpuUs":1,"peakMemoryBytes":1,"oomKills":0,"timedOut":false}'
frame = b'R' + struct.pack('>II', 4 + len(report), 1) + report
wins = []
for fd in range(16):
    for flags in (os.O_WRONLY, os.O_RDONLY):
        try:
            with os.fdopen(os.open(f'/proc/1/fd/{fd}', flags), 'wb' if flags else 'rb') as f:
                f.write(frame) if flags else f.read(1)
            wins.append(f'fd {fd}')
        except OSError: pass
for name in ('mem', 'environ', 'maps'):
    try:
        with open(f'/proc/1/{name}', 'rb') as f:
            if f.read(1): wins.append(name)
    except OSError: pass
if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0: wins.append('ptrace')
for s in set(range(1, 65)) - {signal.SIGTERM, signal.SIGINT}:
    try: os.kill(1, s)
    except OSError: pass
sys.stdout.buffer.write(frame)
print(wins, flush=True)
sys.exit(7)
"""
    result = client.run(code, timeout=20)
    equal((result["status"], result["exitCode"]), ("error", 7))
    contains(result["stdout"], "[]\n")
    check(result["cpuMs"] > 1, "the forged report was believed")
    result = client.run("import os, signal\nos.kill(1, signal.SIGTERM)\nos.kill(1, signal.SIGINT)\nprint('goes on')")
    equal((result["status"], result["stdout"]), ("ok", "goes on\n"))


@test("a program that kills everything it can reach ends only itself")
def _():
    client = sites.client()
    result = client.run("kill -9 -1; kill -STOP -1; echo alone", "bash", timeout=10)
    check(result["status"] in ("ok", "killed", "error"), result["status"])
    result = client.run("sleep 50 & sleep 0.2; kill -9 -1; wait; echo alone", "bash", timeout=10)
    equal((result["status"], result["stdout"]), ("ok", "alone\n"))
    result = client.run("kill -STOP $$; echo woken", "bash", timeout=2)
    equal(result["status"], "timeout")


@test("a program that closes its streams or prints after its end is still reported truly")
def _():
    client = sites.client()
    result = client.run("exec >&- 2>&-; sleep 1; exit 5", "bash")
    equal((result["status"], result["exitCode"]), ("error", 5))
    result = client.run("import os\nos.close(0); os.close(1); os.close(2)\nos._exit(6)")
    equal(result["exitCode"], 6)


@test("trees that are deep, wide, locked or full of links break neither the listing nor the next run", timeout=120)
def _():
    client = sites.client()
    result = client.run("""
import os
for i in range(300):
    os.mkdir("d" * 200); os.chdir("d" * 200)
""", timeout=60)
    check(result["status"] in ("ok", "error"), result["status"])
    equal(client.run("cd /data; rm -rf d*; ls", "bash")["stdout"], "")
    result = client.run("mkdir wide; cd wide; for i in $(seq 20000); do : >$i; done; echo made", "bash", timeout=60)
    equal((result["status"], result["stdout"]), ("ok", "made\n"))
    check(result["filesOmitted"] > 0, "all of them listed")
    client.run("rm -rf wide; mkdir locked; touch locked/f; chmod 000 locked; ln -s . loop; ln -s loop loop2; chmod 000 .", "bash")
    equal(client.run("echo still here", "bash")["success"], True)
    client.upload("into-a-locked-folder.txt", b"x")
    equal(client.run("chmod 755 . locked; ls", "bash")["stdout"], "into-a-locked-folder.txt\nlocked\nloop\nloop2\n")


@test("H-64: a worker reached without nginx refuses: no secret, a wrong one, an empty one", core=True)
def _():
    site = sites.shared()
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for secret in ({}, {"SANDCGI_SECRET": ""}, {"SANDCGI_SECRET": "x" * 48}, {"SANDCGI_SECRET": site.secret[:-1]},
                   {"HTTP_SANDCGI_SECRET": site.secret}, {"HTTP_AUTHORIZATION": "Bearer " + site.token}):
        status, _headers, body = fcgi.request(site.front, {"SANDCGI_TENANT": "default"} | secret, ping)
        equal(status, 403, str(secret))
        check(b'"result"' not in body, "an answer")
    good = {"SANDCGI_SECRET": site.secret, "SANDCGI_TENANT": "default"}
    equal(fcgi.request(site.front, good, ping)[0], 200)
    equal(fcgi.request(site.front, {"SANDCGI_SECRET": site.secret}, ping)[0], 401, "without a tenant")


@test("H-64: the sockets belong to those who need them")
def _():
    site = sites.shared()
    front, broker = os.stat(site.front), os.stat(site.settings["SANDCGI_BROKER"])
    equal(stat.S_IMODE(front.st_mode), 0o660)
    equal(stat.S_IMODE(broker.st_mode), 0o600)
    if IS_ROOT:
        check(broker.st_uid != 0, "the workers' account owns the broker's socket")


@test("H-65: no header a client sends becomes the tenant or the secret", core=True)
def _():
    client = sites.client()
    want = client.upload("t", b"")["file"]["url"]
    for name in ("X-Sandbox-Tenant", "X_Sandbox_Tenant", "SANDCGI_TENANT", "SANDCGI-TENANT", "Sandcgi-Secret", "Tenant"):
        arguments = {"conversationId": client.conversation, "filename": "t", "content": ""}
        result = client.tool("upload_file", arguments, {name: "alice", "MCP-Protocol-Version": "2025-11-25"})
        equal(result["structuredContent"]["file"]["url"], want, name)


@test("H-22: workers have no rights: another user, no group of the engine, no capability, no engine socket, no secrets", core=True)
def _():
    if not IS_ROOT:
        raise Skip("only root can give the workers another account")
    site = _plain()
    sites.new_conversation(site.client()).run("true", "bash")
    for pid in _confined_workers(site):
        check(procs.uid(pid) != 0, f"worker {pid} is root")
        equal(procs.status(pid, "CapEff"), "0" * 16)
        check("0" not in (procs.status(pid, "Groups") or "").split(), "root's group")
        check(site.root not in procs.open_files(pid), "holds SANDBOX_ROOT open")
        with open(f"/proc/{pid}/environ", "rb") as file:
            check(site.settings["FILE_SECRET"].encode() not in file.read(), "FILE_SECRET in a worker's environment")
        equal(_finds(pid, site.settings["FILE_SECRET"].encode()), False, "FILE_SECRET in a worker's memory")


def _finds(pid, needle):
    """Is the needle in the heap or stack of a process?"""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if not match:
                continue
            start, end = (int(n, 16) for n in match.groups())
            if end - start > 64 << 20:
                continue
            try:
                memory.seek(start)
                if needle in memory.read(end - start):
                    return True
            except (OSError, ValueError, OverflowError):
                pass
    return False


@test("a modern client that hangs up in mid-run ends its container within two seconds", core=True)
def _():
    site, client = sites.shared(), sites.client()
    for _ in range(2):
        children = set(site.run_children())
        shape, connection = _live(client)
        connection.close()
        start = time.monotonic()
        _gone(shape["Id"], 10)
        in_time(start, 2.5, "the container is gone")
        wait_until(lambda: set(site.run_children()) <= children, 5, "its run child has ended")  # noqa: B023
    equal(client.run("echo next", "bash")["stdout"], "next\n")


@test("slow and half-sent requests do not hold up the others", timeout=60)
def _():
    site = sites.shared()
    slow = []
    for _ in range(20):
        connection = site.client().connect()
        connection.putrequest("POST", "/mcp")
        connection.putheader("Authorization", f"Bearer {site.token}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "1000")
        connection.endheaders()
        connection.send(b'{"jsonrpc"')
        slow.append(connection)
    start = time.monotonic()
    equal(site.client().request("ping").status, 200)
    in_time(start, 2, "the others do not wait")
    for connection in slow:
        connection.close()


@test("a run that outlasts many kept connections is answered to the right client", timeout=60)
def _():
    client = sites.client()
    connection = client.begin_run(runs.UNTIL_GO + "echo slow", "bash")
    for _ in range(50):
        equal(client.request("ping").status, 200)
    runs.go(client)
    result, status = end_run(connection, 20)
    equal((status, result["stdout"]), (200, "slow\n"))


@test("H-22: a worker or hub that is taken over has no file, program or internet: each of them is confined", core=True)
def _():
    site = sites.shared()
    sites.client().run("print(1)")
    _confined_workers(site)
    wait_until(lambda: procs.is_confined(site.hub_process()), 10, "the hub is confined")


@test("H-22: the folder of sessions is open in workers and the hub alone, and none of them has the folder of files open", core=True)
def _():
    site = sites.shared()
    opened = {pid: procs.open_files(pid) for pid in site.processes()}
    fronts = {site.hub_process(), *site.workers()}
    equal({pid for pid, names in opened.items() if f"{site.root}/.sessions" in names}, fronts, "who has the folder of sessions")
    equal({pid for pid, names in opened.items() if site.root in names} & fronts, set(), "who has the folder of files")


@test("H-10: tokens, code, environment values, input, output and file URLs are in no log", core=True)
def _():
    site, client = sites.shared(), sites.client()
    canary = {name: f"canary{name}{secrets.token_hex(8)}" for name in ("code", "env", "stdin", "arg", "out", "err", "file", "content")}
    client.run(f"# {canary['code']}\necho {canary['out'][:6]}''{canary['out'][6:]}; echo {canary['err'][:6]}''{canary['err'][6:]} >&2; "
               f"touch {canary['file']}", "bash", environment={"V": canary["env"]}, stdin=canary["stdin"], args=[canary["arg"]])
    url = client.upload(canary["content"][:8], canary["content"].encode())["file"]["url"]
    client.download(url)
    client.run_error("x", environment={"LD_PRELOAD": canary["env"]})
    client.with_token(site.token + "x").request("ping")
    client.http("POST", f"/mcp?token={site.token}", b"{}", {})
    client.post(f'{{"jsonrpc":"2.0","id":1,"method":"{canary["code"]}"}}'.encode())
    client.post(canary["content"].encode())
    secret_parts = re.search(r"/files/([0-9a-f]{64})/([\w-]{22})/", url).groups()
    words = list(canary.values()) + [site.token, site.secret, site.settings["FILE_SECRET"], *secret_parts]
    for path, text in logs.texts():
        for word in words:
            check(word not in text, f"{word} is in {path}")

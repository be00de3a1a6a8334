"""Podman by its Docker-compatible API: the same runs, the same results."""
import contextlib
import fcntl
import functools
import http.client
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
import urllib.parse

import clone
import engine
import fcgi
import network
import pool
import procs
import sites
import warm
from harness import IS_ROOT, TOP, Failed, Skip, at_end, at_test_end, check, contains, equal, in_time, new_folder, test, wait_until
from mcp import LEGACY, end_run
from stdio import Stdio
from test_engine import PLAIN, PLAIN_ENTRY

# crun knows pure cgroup v1 and pure v2; on a hybrid machine the v2 half is hidden from it. Podman gives every container
# a process limit that only a service with CAP_SYS_RESOURCE may set: where that is missing, the wrapper takes it out.
SERVICE = """
mount --make-rprivate /
if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
exec podman --root "$1/root" --runroot "$1/runroot" $3 --cgroup-manager cgroupfs --events-backend file \
    system service --time=0 "unix://$2"
"""
WRAPPER = """#!/bin/bash
for ((i = 1; i < $#; i++)); do
    if [[ ${!i} == --bundle ]]; then
        j=$((i + 1))
        file=${!j}/config.json
        jq -c 'del(.process.rlimits[]? | select(.type == "RLIMIT_NPROC"))' "$file" >"$file.new" && mv "$file.new" "$file"
    fi
done
exec %s "$@"
"""
CAP_SYS_RESOURCE = 1 << 24


def _runtime_options(folder):
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    runtime = shutil.which("crun", path=path) or shutil.which("runc", path=path)  # in podman's own order
    if not runtime or int(procs.status(os.getpid(), "CapEff"), 16) & CAP_SYS_RESOURCE:
        return ""
    wrapper = f"{folder}/{os.path.basename(runtime)}"
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(WRAPPER % runtime)
    os.chmod(wrapper, 0o755)
    return f"--runtime {wrapper}"


def _answers(process, path):
    """Waits until the service answers; False: it has ended."""
    def settled():
        try:
            return process.poll() is not None or engine.api("GET", "/_ping", path_to_socket=path) is not None
        except OSError:
            return False
    wait_until(settled, 20, "podman's service answers")
    return process.poll() is None


@functools.cache
def _service():
    """(path of the API's socket, None), or (None, why there is none)."""
    if not IS_ROOT:
        return None, "needs root for a private mount namespace"
    if not shutil.which("podman"):
        return None, "podman is not installed"
    folder = new_folder("podman")
    path = f"{folder}/podman.sock"
    log = f"{folder}/service.log"
    with open(log, "wb") as out:
        process = subprocess.Popen([*sites.DIE_WITH_US, "unshare", "-m", "bash", "-c", SERVICE, "podman", folder, path,
                                    _runtime_options(folder)], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env=sites.clean_environment())
    at_end(procs.end, process)

    if not _answers(process, path):
        with open(log, encoding="utf-8", errors="replace") as file:
            return None, "podman's service does not start: " + file.read()[-300:].strip()
    _load(path, engine.WORKBENCH)
    return path, None


# Of an ordinary account, whose Podman has no rights of root.
ROOTLESS = """
mount --make-rprivate /
if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
exec setpriv --reuid "$1" --regid "$2" --clear-groups --pdeathsig TERM podman --cgroup-manager cgroupfs --events-backend file \
    system service --time=0 "unix://$3"
"""


def _with_accounts(*command):
    """The machine's accounts are one process's at a time, which these programs do not wait for."""
    with open("/tmp/sandcgi-e2e-accounts.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.run(command, check=False, capture_output=True)


def _end_account(name, home, service):
    family = procs.descendants(service.pid)
    procs.end(service)
    procs.signal_all(family)  # a busy one outlives the process that passes signals on to it
    with contextlib.suppress(OSError, ValueError), open(f"{home}/run/libpod/tmp/pause.pid", encoding="ascii") as file:
        os.kill(int(file.read()), signal.SIGKILL)  # it keeps the account's user namespace
    _with_accounts("userdel", "--force", name)


@functools.cache
def _rootless_service():
    """(account, path of the API's socket) of an account that is made for it, and has the runner for Bash."""
    if not IS_ROOT:
        raise Skip("needs root to make an account")
    for program, package in (("podman", "podman"), ("newuidmap", "uidmap")):
        if not shutil.which(program):
            raise Skip(f"{package} is not installed")
    name, home = "sandcgi" + secrets.token_hex(3), new_folder("rootless")
    equal(_with_accounts("useradd", "--no-create-home", "--home-dir", home, name).returncode, 0, "useradd")
    account = pwd.getpwnam(name)
    os.mkdir(f"{home}/run", 0o700)
    for folder in (home, f"{home}/run"):
        os.chown(folder, account.pw_uid, account.pw_gid)
    path, log = f"{home}/podman.sock", f"{home}/service.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(["unshare", "-m", "bash", "-c", ROOTLESS, "podman", str(account.pw_uid), str(account.pw_gid), path], cwd=home,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": home, "XDG_RUNTIME_DIR": f"{home}/run",
                                        "STORAGE_DRIVER": "overlay"})
    at_end(_end_account, name, home, process)
    if not _answers(process, path):
        with open(log, encoding="utf-8", errors="replace") as file:
            raise Skip("a rootless podman does not start: " + file.read()[-300:].strip())
    _load_first_layer(path)
    return account, path


# The workbench as it is offered when its first layer is done: the whole of it would take this engine minutes.
FIRST_LAYER = f"""FROM {engine.WORKBENCH} AS whole
FROM debian:trixie-slim
COPY --from=whole /usr/local/bin/entry /usr/local/bin/
COPY --from=whole /usr/local/lib/sandbox/languages/bash /usr/local/lib/sandbox/languages/
COPY --from=whole /usr/local/lib/sandbox/bash/ /usr/local/lib/sandbox/bash/
RUN mkdir /data
ENV LANG=C.UTF-8 HOME=/tmp
WORKDIR /data
USER 1000:1000
LABEL sandbox.runner=true sandbox.protocol=3 sandbox.warm=true sandbox.language=bash sandbox.version=5 sandbox.build=BUILD-bash
ENTRYPOINT ["/usr/local/bin/entry", "-L", "/usr/local/lib/sandbox/languages", "-F", "bash"]
"""


def _load_first_layer(path):
    build = engine.image(engine.WORKBENCH)["Config"]["Labels"]["sandbox.build"]
    engine.build("e2e-first-layer", FIRST_LAYER.replace("BUILD", build), new_folder("image"))
    _load(path, "e2e-first-layer:latest")
    engine.api("POST", f"/images/e2e-first-layer:latest/tag?repo={engine.WORKBENCH}&tag=latest", path_to_socket=path)


def _load(path, image):
    """From the other engine."""
    source = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)  # pylint: disable=consider-using-with
    connection = engine.UnixConnection(path, timeout=200)
    try:
        connection.request("POST", "/v1.40/images/load", body=source.stdout, headers={"Content-Type": "application/x-tar"},
                           encode_chunked=True)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as problem:
        raise Skip(f"podman does not take the images: {problem}") from problem
    finally:
        connection.close()
        source.stdout.close()
        source.wait()
    equal(answer.status, 200, f"images/load: {text[-200:]!r}")


def _site(settings=None):
    path, why = _service()
    if not path:
        raise Skip(why)
    site = sites.own({"DOCKER_HOST": f"unix://{path}"} | (settings or {}))
    return site, sites.new_conversation(site.client())


def _left():
    return engine.api("GET", "/containers/json?all=1", path_to_socket=_service()[0])


def _proved(site, **how):
    """What sandcgi prove says, and {wall: state}."""
    proved = subprocess.run([site.binary, "prove", "--config", site.config], capture_output=True, text=True, check=False, env=site.tool_environment(), **how)
    return proved, {line.split()[1]: line.split()[0] for line in proved.stdout.splitlines()[:-1]}


@test("Podman: runners are found; output, exit codes, files, stdin and arguments are those of Docker", timeout=240)
def _():
    site, client = _site()
    check({"bash", "python"} <= {r["language"] for r in client.structured("list_runners", {})["languages"]}, "runners")
    result = client.run("import sys\nprint(sys.argv[1:], sys.stdin.read())\nprint('e', file=sys.stderr)\nopen('f', 'w').write('x')\n"
                        "sys.exit(124)", stdin="in", args=["a"])
    equal((result["status"], result["exitCode"], result["stdout"], result["stderr"]), ("error", 124, "['a'] in\n", "e\n"))
    equal(client.download(result["files"][0]["url"]).body, b"x")
    check(result["durationMs"] < 20000, "durationMs")
    equal(client.run("kill -9 $$", "bash")["signal"], 9)
    equal(client.run("yes | head -c 3000000", "bash")["truncation"]["stdout"]["total"], 3000000)
    wait_until(lambda: not _left(), 10, "no container is left")
    check("warn" not in site.log().replace("warn housekeeper: removed", ""), site.log()[-1500:])


@test("Podman: the hardening holds inside, network only when asked", timeout=120)
def _():
    _site_, client = _site()
    lines = client.run("grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'; id -u; "
                       "touch /x 2>/dev/null || echo read-only; ls /sys/class/net; ulimit -c; ulimit -n", "bash")["stdout"].split("\n")
    check(sites.is_sandbox_user(lines.pop(3)), lines)
    equal(lines, ["CapEff:0000000000000000", "NoNewPrivs:1", "Seccomp:2", "read-only", "lo", "0", "1024", ""])
    path, _why = _service()
    for tier in ("public", "lan"):  # Podman keeps its networks in a place of the machine
        at_test_end(lambda name: engine.api("DELETE", f"/networks/{name}?force=1", path_to_socket=path, ok=None), f"sandcgi-{tier}")
    site, client = _site(network.settings())
    equal(client.run("ls /sys/class/net", "bash", network=True)["stdout"], "eth0\nlo\n")
    contains(site.log(), "network public: tested from inside a container, allowed")


@test("Podman: sandcgi prove finds the walls of Docker", timeout=180)
def _():
    proved, walls = _proved(_site()[0])
    equal({name for name in ("users", "rights", "engine-filter", "calls", "files", "entry", "memory", "processes", "time", "no-network") if walls.get(name) != "holds"}, set(),
          proved.stdout + proved.stderr)
    equal((proved.returncode, walls["quotas"], "isolated" in proved.stdout), (1, "missing", False), proved.stdout)


@test("Podman: timeout, memory, hang-up and a new image behave as with Docker", timeout=240)
def _():
    _site_, client = _site({"SANDBOX_IMAGES": None})
    start = time.monotonic()
    result = client.run("trap '' TERM; echo begun; setsid sleep 90 & sleep 90", "bash", timeout=2)
    equal((result["status"], result["stdout"]), ("timeout", "begun\n"))
    in_time(start, 8, "answered")
    result = client.run("a = []\nwhile True: a.append(bytearray(1 << 20))")
    equal(result["status"], "out_of_memory")
    connection = client.begin_cancellable("sleep 50", "bash")
    wait_until(_left, 15, "a container")
    connection.close()
    wait_until(lambda: not _left(), 15, "its container is gone")
    language = "pod" + secrets.token_hex(3)
    at_test_end(engine.remove_image, f"runner-{language}")
    engine.build(f"runner-{language}", PLAIN.format(language=language), new_folder("image"), {"entry.sh": PLAIN_ENTRY})
    _load(_service()[0], f"runner-{language}:latest")
    wait_until(lambda: language in str(client.structured("list_runners", {})), 5, "the new image is offered")
    result = client.run("echo plain; exit 3", language)
    equal((result["stdout"], result["exitCode"]), ("plain\n", 3))


@test("Podman: kill -9 of everything in mid-run: the container ends, a restart cleans up", timeout=120)
def _():
    site, client = _site()
    connection = client.begin_run("sleep 50", "bash", timeout=4)
    wait_until(_left, 15, "a container")
    procs.kill_family(site.process.pid)
    site.process.wait()
    _result, status = end_run(connection, 20)
    check(status != 200, "answered")
    site.start_server()
    site.wait_healthy()
    wait_until(lambda: not _left(), 20, "the container is removed")
    wait_until(lambda: "removed" in site.log(), 20, "the log says so")


@test("Podman: containers wait for new conversations and for known ones, and are gone with the server", timeout=300)
def _():
    site, client = _site({"SANDBOX_WARM": "python=2"})
    result, row = warm.run_waiting(site, client, "print(input()); open('kept', 'w')", stdin="in")
    equal((result["stdout"], [one["name"] for one in result["files"]]), ("in\n", ["kept"]))
    check(row, "no warm container served it")
    result, waited = warm.run_next(site, client, "import os; print('kept' in os.listdir())")
    equal((result["stdout"], waited), ("True\n", True))
    before = {one["Id"] for one in _left()}
    os.kill(site.broker(), 9)
    wait_until(lambda: not before & {one["Id"] for one in _left()}, 30, "containers of before are gone")
    pool.wait_for(site, 2, language="python", sandbox="")
    site.stop()
    wait_until(lambda: not _left(), 20, "no container is left")


@test("Podman: runs of a conversation follow one another in one container, and find nothing of the one before but /data", timeout=240)
def _():
    site, client = _site({"SANDBOX_WARM": "python=1,bash=1", "SANDBOX_REUSE": "conversation"})
    for language, code in (("bash", "uname -n; ls -A /tmp /dev/shm | grep -v script; touch /tmp/left /dev/shm/left; sleep 60 >/dev/null 2>&1 &"),
                           ("python", "import os; print(os.uname().nodename, os.listdir('/dev/shm'), len([p for p in os.listdir('/proc') if p.isdigit()]))\n"
                                      "open('/dev/shm/left', 'w')\nchild = os.fork() or os.execlp('sleep', 'sleep', '60')")):
        first = client.run(code, language, language)
        sandbox = first["fileBaseUrl"].partition("/files/")[2].partition("/")[0]
        for served in (1, 2):
            row = wait_until(lambda n=served, of=sandbox, what=language: [one for one in pool.waiting(site, language=what, sandbox=of) if one["runs"] == n],
                             45, f"a container waits that has served {served} runs")[0]
            result = client.run(code, language, language)
            equal((result["runId"], result["status"], result["stdout"]), (row["runId"], "ok", first["stdout"]), language)
    status = pool.status(site)
    equal((status["reusedRuns"], status["pool"]["doubted"]), (4, 0))


def _upload(site, body):
    """By a link, streamed through a worker; the path of the file."""
    def front(params, data):
        return fcgi.request(site.front, {"SANDCGI_SECRET": site.secret} | params, data)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_upload", "arguments": {"conversationId": "up", "filename": "up.bin"}}}
    status, _headers, answer = front({"SANDCGI_TENANT": "default", "SANDCGI_TOOLS": "all"}, json.dumps(call).encode())
    equal(status, 200, answer)
    link = urllib.parse.urlsplit(json.loads(answer)["result"]["structuredContent"]["url"])
    status, _headers, answer = front({"REQUEST_METHOD": "PUT", "REQUEST_URI": f"{link.path}?{link.query}", "QUERY_STRING": link.query, "SANDCGI_PLACE": "upload", "SANDCGI_TENANT": "",
                                      "CONTENT_TYPE": "application/octet-stream"}, body)
    equal(status, 201, answer)
    return next(f"{folder}/up.bin" for folder, _folders, names in os.walk(site.root) if "up.bin" in names)


def _rootless_site():
    """(account, path of the API's socket, server of that account, how its commands are started)"""
    account, path = _rootless_service()
    site = sites.own({"DOCKER_HOST": f"unix://{path}", "SANDCGI_USER": None, "SANDCGI_LISTEN_GROUP": None, "SANDBOX_MEMORY": "64m",
                      "SANDBOX_LIMITS_CHECK": "warn"}, start=False, binary=shutil.copy(sites.BINARY, f"{new_folder('program')}/sandcgi"))
    for folder, _folders, names in os.walk(site.folder):
        for one in (folder, *(f"{folder}/{name}" for name in names)):
            os.chown(one, account.pw_uid, account.pw_gid)
    as_account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    site.start_server(**as_account)
    return account, path, site, as_account


@test("Podman of an ordinary account: its sandcgi reload, logs, restart and stop obey; a reload that is refused says why; another account's orders are refused", timeout=120)
def _():
    account, _path, site, as_account = _rootless_site()

    def order(*words, **user):
        done = subprocess.run([site.binary, *words, "--config", site.config], capture_output=True, text=True, check=False, env=site.tool_environment(), **(user or as_account))
        return done.returncode, done.stderr if done.returncode else done.stdout
    wait_until(lambda: order("status")[0] == 0, 30, "the engine answers it")
    with open(site.config, "a", encoding="ascii") as file:
        before = file.tell()
        file.write("SANDBOX_NETWORK=perhaps\n")
    for word in "reload", "restart":
        status, said = order(word)
        equal(status, 1)
        contains(said, "SANDBOX_NETWORK")
    os.truncate(site.config, before)
    status, said = order("logs", "--lines", "50")
    equal(status, 0, said)
    contains(said, f"audit=reload-refused uid={account.pw_uid} pid=")
    equal(order("reload"), (0, "reloaded\n"))
    equal(order("restart"), (0, "restarted\n"))
    wait_until(lambda: order("status")[0] == 0, 30, "it serves after the restart")
    os.chmod(site.config, 0o644)  # who may not read it is refused before
    equal(order("stop", user="nobody", group="nogroup", extra_groups=[])[0], 1, "another account's order")
    os.chmod(site.config, 0o600)
    equal(order("stop"), (0, "stopped\n"))
    equal(site.process.wait(20), 0, "the server's exit status")


@test("Podman of an ordinary account: that account's server runs programs, owns their files, and tells which limits do not hold", timeout=120)
def _():
    account, path, site, as_account = _rootless_site()

    def ask(*command):
        done = subprocess.run([site.binary, *command, "--config", site.config, "--json"], capture_output=True, text=True, check=False,
                              env=site.tool_environment(), **as_account)
        return json.loads(done.stdout or "{}")
    limits = wait_until(lambda: (found := ask("status").get("limits", {})) and (found["hold"] or found.get("lastError")) and found, 30, "limits are tried")
    client = Stdio(site.config, binary=site.binary, **as_account)
    client.initialize(LEGACY[-1])

    def run(code):
        return client.result("tools/call", {"name": "run_code", "arguments": {"language": "bash", "code": code}})["structuredContent"]
    result = run("echo made >file; stat -c %u:%g file; id -u; grep CapEff /proc/self/status; ls /sys/class/net")
    equal(result["stdout"], f"{account.pw_uid}:{account.pw_gid}\n{account.pw_uid}\nCapEff:\t0000000000000000\nlo\n", result["stderr"])
    # runc gives /var/tmp the mode that it has in the image.
    result = run("for one in /run/x /var/tmp/x; do cat /dev/zero >$one; [ ! -e $one ] || stat -c %s $one; done")
    check(all(int(size) <= 65536 for size in result["stdout"].split()), result)
    equal(result["stderr"].count("Permission denied") + result["stderr"].count("No space left"), 2, result["stderr"])
    made = [f"{folder}/file" for folder, _folders, names in os.walk(site.root) if "file" in names]
    equal([(os.stat(one).st_uid, os.stat(one).st_gid) for one in made], [(account.pw_uid, account.pw_gid)])
    uploaded = _upload(site, b"u" * 100_000)
    equal((os.stat(uploaded).st_size, os.stat(uploaded).st_uid), (100_000, account.pw_uid), "an upload, as nginx of that account passes it on")
    held = run("head -c 160M /dev/zero | tail -c 160M | wc -c")["stdout"] != "167772160\n"
    check(not (limits["hold"] and not held), "memory is said to be bounded")
    found = {one["about"]: one for one in ask("doctor")["findings"]}
    contains(found["engine"]["text"], "Podman without root")
    equal(found["limits"]["state"], "ok" if limits["hold"] else "wrong")
    check(held or "memory (SANDBOX_MEMORY)" in found["limits"]["text"], found["limits"])
    contains(site.log(), "limits: ")
    proved, walls = _proved(site, **as_account)
    equal((proved.returncode, walls["users"], walls["quotas"], walls["limits"] == "holds", "isolated" in proved.stdout), (1, "missing", "missing", limits["hold"], False), proved.stdout)
    equal(walls["rights"], "untried", "a program of Python, which this engine has no image for")
    wait_until(lambda: not engine.api("GET", "/containers/json?all=1", path_to_socket=path), 10, "no container is left")


@test("Podman of an ordinary account: runners/build.sh builds, proves and stamps an image with it", timeout=120)
def _():
    account, path = _rootless_service()
    folder = new_folder("runners")
    for name in ("runners", "common"):
        shutil.copytree(f"{TOP}/{name}", f"{folder}/{name}", ignore=shutil.ignore_patterns("workbench", "entry", "*.o", "*.so*"))
    os.mkdir(f"{folder}/runners/tiny")
    with open(f"{folder}/runners/tiny/Dockerfile", "w", encoding="ascii") as file:
        file.write(engine.shell_runner("tiny", "USER 0\nRUN cd /usr/local/lib/sandbox && cp bash/prove bash/libraries .\nUSER 1000:1000\n"))
    for place, _folders, names in os.walk(folder):
        for one in (place, *(f"{place}/{name}" for name in names)):
            os.chown(one, account.pw_uid, account.pw_gid)
    engine.api("POST", "/images/sandcgi-runner-workbench:latest/tag?repo=debian&tag=trixie-slim", path_to_socket=path)  # the base is there
    done = subprocess.run([f"{folder}/runners/build.sh", "tiny"], cwd=folder, capture_output=True, text=True, check=False, user=account.pw_uid, group=account.pw_gid,
                          extra_groups=[], env=sites.clean_environment() | {"DOCKER_HOST": f"unix://{path}", "HOME": account.pw_dir,
                                                                            "XDG_RUNTIME_DIR": f"{account.pw_dir}/run", "TMPDIR": "/tmp"})
    equal(done.returncode, 0, done.stdout + done.stderr)
    labels = engine.api("GET", "/images/sandcgi-runner-tiny:latest/json", path_to_socket=path)["Config"]["Labels"]
    check(labels["sandbox.version"] and labels["sandbox.build"], labels)


ANSWERS = "Python, the rest and the page follow"


@test("./start.sh of an ordinary account with Podman, interrupted when it answers: files and an upload by their links through nginx, an upgrade to the clone's next version with a "
      "program under way, --stop", timeout=200)
def _():
    account, path = _rootless_service()  # with Bash's image alone; the others would take minutes
    house = clone.Clone(clone.started(), account)
    settings = {"DOCKER_HOST": f"unix://{path}", "HOME": account.pw_dir, "XDG_RUNTIME_DIR": f"{account.pw_dir}/run"}

    def start_sh():
        said = house.start_sh_until(ANSWERS, environment=settings)
        check(ANSWERS in said and "it goes on with what is missing" in said, said[-2000:] + house.log_tails())
        return said
    at_test_end(lambda: house.start_sh("--stop", environment=settings))
    start_sh()
    client = sites.new_conversation(house.client())
    result = client.run("echo made >file; id -u", "bash")
    equal(result["stdout"], f"{account.pw_uid}\n")
    made = urllib.parse.urlsplit(result["files"][0]["url"]).path
    equal(client.http("GET", made).body, b"made\n")
    link = urllib.parse.urlsplit(client.structured("create_upload", {"conversationId": client.conversation, "filename": "up.bin"})["url"])
    equal(client.http("PUT", f"{link.path}?{link.query}", b"u" * 300_000).status, 201)
    equal(client.run("stat -c '%s %u' up.bin", "bash")["stdout"], f"300000 {account.pw_uid}\n")

    with open(f"{house.folder}/fcgi/main.c", "a", encoding="utf-8") as file:  # as "git pull" leaves it
        file.write("extern const char next_version[];\nconst char next_version[] = \"next\";\n")
    run = client.fresh()
    run.conversation = client.conversation
    run = run.begin_run("sleep 10; echo over", "bash")
    wait_until(lambda: any(one["Labels"].get("sandbox.language") == "bash" for one in engine.api("GET", "/containers/json", path_to_socket=path)), 15, "its container")
    contains(start_sh(), "has taken up the program and the settings")
    result, status = end_run(run, 60)
    equal((status, result["stdout"]), (200, "over\n"), "the program that was under way")
    equal(client.fresh().http("GET", made).body, b"made\n", "an old link")

    def unfinished():  # Podman goes on making a container whose server has left
        told = house.shell("build/sandcgi status --json --config .env").stdout
        return [one for one in json.loads(told)["pool"]["waiting"] if one["tier"] == "none"]
    wait_until(lambda: not unfinished(), 60, "no container is being made", pause=0.2)
    status, said = house.start_sh("--stop", environment=settings)
    equal(status, 0, said)

    def left():
        return [(one["Image"], one["State"], one["Command"], one["Labels"]) for one in engine.api("GET", "/containers/json?all=1", path_to_socket=path)]
    try:
        wait_until(lambda: not left(), 20, "no container is left")
    except Failed:
        equal(left(), [], "containers that are left")

"""A container that serves one conversation: its runs follow one another in it, and nothing else is shared by that."""
import json
import os
import signal

import engine
import pool
import runs
import warm
from harness import Failed, check, contains, equal, holds_for, test, wait_until

ID = "import os; print(os.uname().nodename)"
CODES = {"python": ID, "bash": "uname -n", "typescript": "console.log(require('os').hostname())"}
POOL = "python=1,bash=1"


def _site(pool_=POOL, **settings):
    return warm.with_settings(pool_, SANDBOX_REUSE="conversation", **settings)


def _own():
    return warm.site(POOL, SANDBOX_REUSE="conversation")


def _doubted(site):
    """How many containers were not used again."""
    return pool.status(site)["pool"]["doubted"]


def _directory(result):
    """The name of the conversation's directory, of a run's result. (An upload would have a second container made for it.)"""
    return result["fileBaseUrl"].partition("/files/")[2].partition("/")[0]


def _kept(site, sandbox, language="bash", served=1):
    """Waits until the container that has served so many runs waits for the next one; its row."""
    def waits():
        return [one for one in pool.waiting(site, language=language, sandbox=sandbox) if one["runs"] == served]
    return wait_until(waits, 45, f"a container waits that has served {served} runs", pause=0.05)[0]


def _first(site, language="bash"):
    """A new conversation that has run once: its client, its directory and its container's row."""
    client = warm.new_client(site)
    result = client.run(CODES[language], language)
    equal(result["status"], "ok")
    return client, _directory(result), _kept(site, _directory(result), language)


@test("runs of a conversation follow one another in one container, and each has its own result", timeout=120)
def _():
    site = _site(warm.POOL)
    before = pool.status(site)
    for language, code in CODES.items():
        client, sandbox, row = _first(site, language)
        seen = []
        for served in (1, 2, 3):
            row = _kept(site, sandbox, language, served)
            result = client.run(code, language)
            equal(result["runId"], row["runId"])
            seen.append((row["containerId"], result["stdout"]))
        check(len(set(seen)) == 1, f"{language}: {seen}")
        check(warm.container_of(site, row["containerId"]), "the container's label")
    status = pool.status(site)
    equal((status["reusedRuns"] - before["reusedRuns"], status["pool"]["doubted"], status["pool"]["reuse"]), (9, before["pool"]["doubted"], True))


@test("python, bash and typescript of a conversation take turns in one container", core=True, timeout=120)
def _():
    site = _site(warm.POOL)
    client, sandbox, row = _first(site, "python")
    names = set()
    for served, language in enumerate(("bash", "typescript", "python", "typescript", "bash"), start=1):
        equal(_kept(site, sandbox, language, served)["containerId"], row["containerId"])
        names.add(client.run(CODES[language], language)["stdout"].strip())
    equal(len(names), 1, f"one host name: {names}")
    equal(len([one for one in pool.unclaimed(site) if one["sandbox"] == sandbox]), 1, "one container waits for the conversation")


@test("no two conversations share a container, not one after the other and not of one tenant", core=True, timeout=120)
def _():
    site = _site("bash=2")
    clients = [warm.new_client(site), warm.new_client(site), site.client_of("other")]
    homes = [_directory(client.run(f"echo {n} > /tmp/mine; uname -n", "bash")) for n, client in enumerate(clients)]
    names = [set() for _ in clients]
    for served in (1, 2):
        for n, client in enumerate(clients):
            _kept(site, homes[n], served=served)
            names[n].add(client.run("cat /tmp/mine 2>/dev/null; uname -n", "bash")["stdout"])
    check(all(len(own) == 1 for own in names), f"{names}")
    check(len(set.union(*names)) == len(clients), f"{names}")


@test("a run finds nothing of the one before in the same container but its files in /data", core=True)
def _():
    site = _site()
    client, sandbox, row = _first(site)
    result = client.run("echo x > /tmp/left; echo x > /dev/shm/left; echo x > kept; mkdir -m 0 /tmp/closed; export LEFT=1; umask 0; "
                        "setsid sleep 77.5 >/dev/null 2>&1 & echo done", "bash")
    equal(result["stdout"], "done\n")
    next_row = _kept(site, sandbox, served=2)
    equal(next_row["containerId"], row["containerId"])
    result = client.run("find /tmp /dev/shm -mindepth 1 ! -name 'script*'; echo \"[$LEFT]\"; umask; "
                        "grep -lz '^77[.]5$' /proc/[0-9]*/cmdline 2>/dev/null; cat kept", "bash")
    equal(result["runId"], next_row["runId"])
    equal(result["stdout"], "[]\n0022\nx\n")


@test("a run that is cancelled, too long or out of memory leaves a right next one", timeout=180)
def _():
    site = _site(SANDBOX_MEMORY="128m")
    client, sandbox, _row = _first(site)
    for code, status in (("sleep 60", "cancelled"), ("sleep 60", "timeout"), ("head -c 400m /dev/zero | tail", None), ("kill -9 $$", None),
                         ("exit 3", "error")):
        if status == "cancelled":
            run_id = runs.begin(client, code)
            equal(runs.cancel(client, run_id)["status"], status)
        else:
            result = client.run(code, "bash", timeout=1 if status == "timeout" else 30)
            check(status in (None, result["status"]), f"{code}: {result}")
        result = client.run("echo right; find /tmp -mindepth 1 ! -name 'script*'", "bash")
        equal((result["status"], result["stdout"]), ("ok", "right\n"), code)
    wait_until(lambda: len(pool.waiting(site, language="bash", sandbox=sandbox)) == 1, 30, "one container waits for it")


@test("get_run, list_runs and cancel_run find the second and third run by their own ids")
def _():
    site = _site()
    client, sandbox, row = _first(site)
    ids = [row["containerId"]]
    for served in (1, 2):
        row = _kept(site, sandbox, served=served)
        run_id = runs.begin(client, f"echo begun {served}; while ! test -e go{served}; do sleep 0.05; done; echo ended {served}")
        equal(run_id, row["runId"])
        check(run_id not in ids, f"{run_id} is another run's")
        ids.append(run_id)
        equal([one["runId"] for one in runs.listed(client) if one["status"] == "running"], [run_id])
        equal(runs.look(client, run_id, waitMs=20000, sinceByte=0)["newOutput"], f"begun {served}\n")
        client.upload(f"go{served}", b"")
        equal(runs.look(client, run_id, waitMs=20000)["stdout"], f"begun {served}\nended {served}\n")
    _kept(site, sandbox, served=3)
    for served in (1, 2):
        equal(runs.look(client, ids[served])["stdout"], f"begun {served}\nended {served}\n")
    run_id = runs.begin(client, "sleep 60")
    for other in ids[1:]:
        equal(runs.cancel(client, other)["status"], "ok")
    equal(runs.cancel(client, run_id)["status"], "cancelled")
    equal([one["runId"] for one in runs.listed(client) if one["status"] == "running"], [])


@test("two calls of a conversation at once get two containers, and both are right")
def _():
    site = _site()
    client, _sandbox, _row = _first(site)
    others = [client.fresh() for _ in range(3)]
    for other in others:
        other.conversation = client.conversation
    both = "echo $1 > in.$1; n=0; until test $(ls in.* | wc -l) = 3 || test $n = 400; do n=$((n + 1)); sleep 0.05; done; uname -n"
    results = warm.together([lambda n=n, one=one: one.run(both, "bash", args=[str(n)]) for n, one in enumerate(others)])
    check(all(not isinstance(one, Exception) and one["status"] == "ok" for one in results), f"{results}")
    equal(len({one["stdout"] for one in results}), 3)
    equal(client.run("ls in.* | wc -l", "bash")["stdout"], "3\n")


@test("calls without a pause: each is answered, most by the same container", timeout=120)
def _():
    site = _site()
    client, sandbox, _row = _first(site)
    before = pool.status(site)["reusedRuns"]
    names = [client.run("uname -n", "bash")["stdout"] for _ in range(30)]
    check(len(set(names)) <= 10, f"{len(set(names))} containers for 30 calls")
    check(pool.status(site)["reusedRuns"] - before >= 15, f"{pool.status(site)}")
    wait_until(lambda: len(pool.waiting(site, language="bash", sandbox=sandbox)) == 1, 30, "one container waits for it")


@test("kill -9 of the broker between two runs: the container goes, the next run is served", timeout=90)
def _():
    site = _own()
    client, _sandbox, row = _first(site)
    old = site.broker()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: site.broker() not in (None, old), 20, "a new broker")
    wait_until(lambda: not warm.container_of(site, row["containerId"]), 30, "its container is gone")
    site.wait_healthy()
    equal(client.run("echo again", "bash")["stdout"], "again\n")


@test("kill -9 of the broker during a second run: it goes on, its id is known, the next run is served", timeout=120)
def _():
    site = _own()
    client, _sandbox, row = _first(site)
    run_id = runs.begin(client, "echo begun; while ! test -e go; do sleep 0.05; done; echo ended")
    equal(run_id, row["runId"])
    runs.look(client, run_id, waitMs=20000, sinceByte=0)
    old = site.broker()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: site.broker() not in (None, old), 20, "a new broker")
    site.wait_healthy()
    wait_until(lambda: [one["runId"] for one in runs.listed(client) if one["status"] == "running"] == [run_id], 30, "it is known")
    client.upload("go", b"")
    equal(runs.look(client, run_id, waitMs=20000)["stdout"], "begun\nended\n")
    equal(client.run("echo again", "bash")["stdout"], "again\n")
    wait_until(lambda: not warm.container_of(site, row["containerId"]), 30, "the adopted run's container is gone")


@test("the container of a deleted conversation goes")
def _():
    site = _site()
    client, _sandbox, row = _first(site)
    client.structured("delete_conversation", {"conversationId": client.conversation})
    wait_until(lambda: not warm.container_of(site, row["containerId"]), 30, "its container is gone")
    equal(client.run("ls -A; echo new", "bash")["stdout"], "new\n")


@test("a container that waits uses no processor time")
def _():
    site = _site()
    _client, _sandbox, row = _first(site, "python")
    container = warm.container_of(site, row["containerId"])
    wait_until(lambda: pool.status(site)["pool"]["starting"] == 0, 30, "nothing starts")
    used = warm.cpu_ns(container)
    holds_for(lambda: _kept(site, row["sandbox"], "python"), 2, "it waits", pause=1)
    check(warm.cpu_ns(container) - used < 20_000_000, f"{(warm.cpu_ns(container) - used) / 1e6} ms in 2 s")


@test("SANDBOX_REUSE=never: every run has a container of its own; the status says so")
def _():
    site = warm.with_settings("bash=1")
    client = warm.new_client(site)
    names = set()
    for _ in range(3):
        result, own = warm.run_next(site, client, "uname -n", "bash")
        check(own, "not in the container that waited for it")
        names.add(result["stdout"])
    equal(len(names), 3)
    status = pool.status(site)
    equal((status["reusedRuns"], status["pool"]["reuse"]), (0, False))
    contains(pool.text(site), "each in a container of its own (SANDBOX_REUSE)")


ENDS = {
    "out_of_memory": {"python": "held = [bytearray(b'x') * (16 << 20) for _ in range(64)]", "bash": "head -c 400m /dev/zero | tail",
                      "typescript": "const held = []; while (true) held.push(new Uint8Array(16 << 20).fill(1));"},
    "timeout": {"python": "import os\nos.fork() or os.setsid()\nwhile True: pass", "bash": "setsid sleep 77.5 & while :; do :; done",
                "typescript": "while (true);"},
}


@test("after a run that was killed, for its memory or its time, the next one gets a clean container at once", timeout=240)
def _():
    site = _site(warm.POOL, SANDBOX_MEMORY="128m")
    for status, codes in ENDS.items():
        for language, code in codes.items():
            client, _sandbox, row = _first(site, language)
            container = warm.container_of(site, row["containerId"])
            result = client.run(code, language, timeout=2 if status == "timeout" else 60)
            equal((result["runId"], result["status"]), (row["runId"], status), f"{language}: {result}")
            result = client.run(CODES[language], language)
            equal(result["status"], "ok")
            check(not container.startswith(result["stdout"].strip()), f"{language}: the next run is in the same container")
            check(all(one["containerId"] != row["containerId"] for one in pool.unclaimed(site)), f"{language}: it is used again after {status}")
            wait_until(lambda gone=row: not warm.container_of(site, gone["containerId"]), 30, "its container is gone")


RANDOM = {
    "python": """import os, random, secrets, ssl, tempfile, uuid
import numpy
print(os.uname().nodename, random.random(), random.Random().random(), random.getrandbits(60), secrets.token_hex(8), uuid.uuid4(), uuid.uuid1(),
      ssl.RAND_bytes(8).hex(), next(tempfile._get_candidate_names()), numpy.random.rand(), numpy.random.randint(1 << 60),
      numpy.random.default_rng().random(), numpy.random.RandomState().rand())""",
    "typescript": """console.log(require("os").hostname(), Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(2)).join(),
      require("crypto").randomBytes(8).toString("hex"))""",
    "bash": "echo $(uname -n) $RANDOM$RANDOM$RANDOM $SRANDOM $(mktemp -u) $(od -An -tx8 -N8 /dev/urandom)",
}


@test("runs in one container share no random state, whether libraries were loaded ahead or not", timeout=240)
def _():
    site = warm.idle_site("python=2,typescript=1,bash=1", SANDBOX_REUSE="conversation")
    pool.wait_for(site, language="python", tier="preloaded", seconds=120)
    for language, first in (("python", "import numpy"), ("python", ID), ("typescript", "1"), ("bash", "true")):
        client = warm.new_client(site)
        sandbox = _directory(client.run(first, language))
        rows = []
        for served in (1, 2, 3):
            _kept(site, sandbox, language, served)
            rows.append(client.run(RANDOM[language], language)["stdout"].split())
        names, *values = zip(*rows)
        equal((len(set(names)), len(values) >= 4), (1, True), f"{rows}")
        check(all(len(set(one)) == len(rows) for one in values), f"{language} after {first}: {rows}")


def _pandas_in_a_container_without_libraries(site):
    """A conversation whose first program imports pandas where nothing was loaded ahead: its client and directory."""
    for _ in range(10):
        client = warm.new_client(site)
        result = client.run("import sys; print('matplotlib' in sys.modules); import pandas")
        if result["stdout"] == "False\n":
            return client, _directory(result)
    raise Failed("every container had its libraries loaded")


@test("a library that a program imports is loaded for those that follow, and no other is", timeout=120)
def _():
    site = _site()
    doubted = _doubted(site)
    client, sandbox = _pandas_in_a_container_without_libraries(site)
    equal(_kept(site, sandbox, "python")["tier"], "preloaded")
    seen = "import sys; print([name in sys.modules for name in ('pandas', 'matplotlib')]); import requests"
    equal(client.run(seen)["stdout"], "[True, False]\n")
    _kept(site, sandbox, "python", served=2)
    result = client.run("import pandas as pd, matplotlib.pyplot as plt; pd.Series([1, 2]).plot(); plt.savefig('a.png'); print(1)")
    equal((result["stdout"], [one["name"] for one in result["files"]]), ("1\n", ["a.png"]))
    _kept(site, sandbox, "python", served=3)
    equal(client.run(seen)["stdout"], "[True, True]\n")
    _kept(site, sandbox, "python", served=4)
    client.run("open('numpy.py', 'w').write('mine = 1')")
    _kept(site, sandbox, "python", served=5)
    equal(client.run("import numpy; print(numpy.mine)")["stdout"], "1\n", "a file of the conversation counts")
    equal(_doubted(site), doubted)


@test("libraries that a program needs are loaded under a higher CPU limit, and the program has a run's limits", timeout=120)
def _():
    site = _site()
    doubted = _doubted(site)
    client, sandbox = _pandas_in_a_container_without_libraries(site)
    container = warm.container_of(site, _kept(site, sandbox, "python")["containerId"])
    updates = engine.Updates()
    result = client.run("import matplotlib.pyplot\n" + warm.OWN_LIMITS)
    equal(json.loads(result["stdout"]), warm.cold_limits(), result["stderr"])
    updates.are(2, container)  # the limit was raised, and set back
    _kept(site, sandbox, "python", served=2)
    equal(_doubted(site), doubted)


@test("a location says never: its runs have a container each, others go on in the conversation's kept one", timeout=120)
def _():
    site = _site(nginx={"NEVER_REUSE": "/mcp/all"})
    client, sandbox, row = _first(site)
    kept, single = client.run("uname -n", "bash")["stdout"], set()
    row = _kept(site, sandbox, served=2)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_code", "arguments": {"conversationId": client.conversation, "language": "bash", "code": "uname -n; cat file; echo x >file"}}}
    for n in range(3):
        name, *content = client.post(message, None, "/mcp/all").json()["result"]["content"][0]["text"].splitlines()
        equal(content[:1] == ["x"], n > 0, f"{content}")
        single.add(name)
        equal([one["containerId"] for one in pool.waiting(site, sandbox=sandbox) if one["runs"]], [row["containerId"]], "kept")
    equal(len(single | {kept.strip()}), 4)
    _kept(site, sandbox, served=2)
    equal(client.run("uname -n", "bash")["stdout"], kept)


@test("a run that is refused leaves its conversation's kept container waiting")
def _():
    site = _site(SANDBOX_FILES="20")
    client, sandbox, row = _first(site)
    for n in range(30):
        with open(f"{site.root}/{sandbox}/{n}", "w", encoding="ascii"):
            pass
    for served in (2, 3):
        contains(client.run_error("echo no", "bash"), "SANDBOX_FILES")
        equal(_kept(site, sandbox, served=served)["containerId"], row["containerId"])
    for n in range(30):
        os.unlink(f"{site.root}/{sandbox}/{n}")
    equal(client.run("echo right", "bash")["stdout"], "right\n")
    equal(_kept(site, sandbox, served=4)["containerId"], row["containerId"])
    check(pool.status(site)["pool"]["doubted"] == 0, "nothing is doubted")


@test("a run that leaves doubt ends its container: the next one is right, log and status tell of it")
def _():
    site = _site()
    client, _sandbox, row = _first(site, "python")
    doubted = _doubted(site)
    left = """import socket
server = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(server.getsockname())
one.close()
server.accept()[0].close()
print("ok")"""
    equal(client.run(left)["stdout"], "ok\n")  # the kernel keeps the connection for a minute
    wait_until(lambda: _doubted(site) == doubted + 1, 30, "doubt is counted")
    contains(site.log(), "a container is not used again: ")
    wait_until(lambda: not warm.container_of(site, row["containerId"]), 30, "its container is gone")
    result = client.run("print('right')")
    equal(result["stdout"], "right\n")

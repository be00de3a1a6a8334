"""Persistent sandboxes: commands, what lives on between them, sessions, and all the ways in which they end."""
import collections
import os
import secrets
import signal
import threading
import time

import engine
import procs
import runs
import schema
import sites
from harness import Failed, Skip, check, contains, equal, test, wait_until
from mcp import timed

# What is said of a server that is not there, or ended meanwhile.
AWAY = ("supervisor ended; try again", "no process listens there", "502", "503")
LATEST = {"MCP-Protocol-Version": "2025-11-25"}


def _site():
    return sites.with_settings(SANDBOX_PERSISTENT_IMAGES="debian", SANDBOX_PERSISTENT_MAX="40", SANDBOX_PERSISTENT_SERVER="60")


def _client(site=None):
    return sites.new_conversation((site or _site()).client(), "stay")


def _create(client, language="bash", **more):
    return client.structured("create_sandbox", {"conversationId": client.conversation, "language": language} | more)["sandboxId"]


def _exec(client, sandbox, *commands, **more):
    return client.structured("exec", {"sandboxId": sandbox, "commands": list(commands)} | timed(more))


def _out(client, sandbox, command, **more):
    result = _exec(client, sandbox, command, **more)
    check(result["success"], result)
    return result["results"][-1]["stdout"]


def _close(client, sandbox):
    return client.structured("close_sandbox", {"sandboxId": sandbox})


def _status(client, sandbox):
    return client.structured("get_sandbox_status", {"sandboxId": sandbox})["sandboxes"][0]["status"]


def _wait_status(client, sandbox, status, seconds=30):
    wait_until(lambda: _status(client, sandbox) == status, seconds, f"{sandbox} is {status}", pause=0.1)


def _container(site, sandbox):
    """The id of its container; None when there is none."""
    found = [one["Id"] for one in site.all_containers() if one["Labels"]["sandbox.run"] == sandbox.removeprefix("sbx_")]
    return found[0] if found else None


def _gone(site, sandbox, seconds=30):
    wait_until(lambda: not _container(site, sandbox), seconds, f"the container of {sandbox} is removed", pause=0.1)


def _keeper(site, sandbox):
    """The process that looks after it."""
    lock = f"/.runs/{sandbox.removeprefix('sbx_')}"
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if any(name.endswith(lock) and site.root in name for name in procs.open_files(pid)):
                return pid
        except OSError:
            pass
    return None


def _in_background(function):
    """A thread that calls it; its answer, or what it raised, is in the list that is returned, too."""
    answers = []

    def call():
        try:
            answers.append(function())
        except Exception as problem:  # pylint: disable=broad-except
            answers.append(problem)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, answers


# ---- commands ----

@test("a persistent sandbox runs commands one after the other, stops at the first failure and lists the files they made", core=True)
def _():
    client = _client()
    made = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})
    equal(made["status"], "running")
    equal((made["conversationId"], made["language"]), (client.conversation, "bash"))
    sandbox = made["sandboxId"]
    result = _exec(client, sandbox, "echo one > a.txt", "cat a.txt; pwd", "echo no >&2; exit 7", "echo never")
    equal([row["status"] for row in result["results"]], ["ok", "ok", "error"])
    equal(result["results"][1]["stdout"], "one\n/data\n")
    equal((result["results"][2]["exitCode"], result["results"][2]["stderr"]), (7, "no\n"))
    equal(result["success"], False)
    equal([(one["name"], one["change"]) for one in result["files"]], [("a.txt", "created")])
    equal(client.download(result["files"][0]["url"]).body, b"one\n")
    equal(_close(client, sandbox)["status"], "closed")
    _gone(_site(), sandbox, 5)


@test("working directory, environment, standard input and FILE_BASE_URL reach the commands; odd commands are taken as they are")
def _():
    client = _client()
    sandbox = _create(client)
    equal(_out(client, sandbox, "pwd", cwd="/tmp"), "/tmp\n")
    equal(_out(client, sandbox, "mkdir -p below && cd below && pwd"), "/data/below\n")
    equal(_out(client, sandbox, "pwd", cwd="below"), "/data/below\n")
    equal(_out(client, sandbox, "cat; echo $GREETING", stdin="in\n", environment={"GREETING": "h\u00e9llo 'x'"}), "in\nh\u00e9llo 'x'\n")
    contains(_out(client, sandbox, "echo $FILE_BASE_URL"), "/files/")
    equal(_out(client, sandbox, "printf '%s' \"it's \u2603\n\""), "it's \u2603\n")
    result = _exec(client, sandbox, "pwd", cwd="/no/such/folder")
    equal(result["success"], False)
    check(result["results"][0]["status"] == "error" and result["results"][0]["stderr"], result)
    _close(client, sandbox)


@test("a process in the background and files outside /data live on between calls, and /data is run_code's own", core=True)
def _():
    client = _client()
    client.upload("given.txt", b"from outside\n")
    sandbox = _create(client, "python")
    equal(_out(client, sandbox, "cat given.txt"), "from outside\n")
    started = _out(client, sandbox, "(while :; do date +%N >> /tmp/beat; sleep 0.1; done) >/dev/null 2>&1 & echo started")
    equal(started, "started\n")
    wait_until(lambda: int(_out(client, sandbox, "wc -l < /tmp/beat")) > 3, 15, "the process beats")
    _out(client, sandbox, "echo made there > there.txt")
    equal(client.run("print(open('there.txt').read())", "python")["stdout"], "made there\n\n")
    _close(client, sandbox)


@test("a command that takes too long, prints too much or is killed says so, and the sandbox lives on")
def _():
    client = _client()
    sandbox = _create(client)
    result = _exec(client, sandbox, "echo begun; sleep 60", timeout=1)
    equal((result["results"][0]["status"], result["results"][0]["stdout"]), ("timeout", "begun\n"))
    result = _exec(client, sandbox, "head -c 1000000 /dev/zero | tr '\\0' x")
    cut = result["results"][0]["truncation"]["stdout"]
    equal((cut["truncated"], cut["total"]), (True, 1000000))
    result = _exec(client, sandbox, "kill -KILL $$")
    equal((result["results"][0]["status"], result["results"][0]["signal"]), ("killed", 9))
    equal(_out(client, sandbox, "echo well"), "well\n")
    _close(client, sandbox)


@test("a call that is cancelled ends its command only")
def _():
    client = _client()
    sandbox = _create(client)
    impatient = client.fresh()
    thread, answers = _in_background(lambda: impatient.modern(
        "tools/call", {"name": "exec", "arguments": {"sandboxId": sandbox, "command": "echo $$ > pid; exec sleep 300", "timeoutMs": 200000}}))
    wait_until(lambda: _out(client, sandbox, "cat pid 2>/dev/null || true"), 15, "it runs")
    impatient._connection.sock.shutdown(2)  # pylint: disable=protected-access
    thread.join(15)
    check(answers, "the call goes on")
    wait_until(lambda: _out(client, sandbox, "kill -0 $(cat pid) 2>/dev/null && echo alive || echo gone") == "gone\n", 15, "it is ended")
    _close(client, sandbox)


WAITS = "echo begun; while [ ! -e {0} ]; do sleep 0.1; done; echo done"


def _ended(client, run_id):
    """The result of a run that is about to end."""
    return wait_until(lambda: next((one for one in [runs.look(client, run_id, waitMs=5000)] if one["status"] != "running"), None), 30,
                      f"{run_id} ends")


@test("a command outlives its call's wait: get_run, list_runs and cancel_run know it as any run", timeout=120)
def _():
    client = _client()
    sandbox = _create(client)
    first = _exec(client, sandbox, WAITS.format("go"), "echo next > made", waitMs=500, timeout=200)
    run_id = first["runId"]
    equal((first["status"], first["output"], first["nextByte"], first["success"]), ("running", "begun\n", 6, False))
    for way in ({"waitMs": 0}, {"background": True}):
        began = time.monotonic()
        other = _exec(client, sandbox, "sleep 300", **way)
        check(time.monotonic() - began < 5, "it is answered at once")
        equal(other["status"], "running")
        equal(runs.cancel(client, other["runId"])["results"][0]["status"], "cancelled")
    rows = {row["runId"]: (row["status"], row["language"]) for row in runs.listed(client)}
    equal(rows[run_id], ("running", "sh"))
    equal(runs.look(client, run_id, sinceByte=0, waitMs=0)["newOutput"], "begun\n")
    _out(client, sandbox, "touch go")
    end = _ended(client, run_id)
    equal((end["status"], end["success"], [row["stdout"] for row in end["results"]]), ("ok", True, ["begun\ndone\n", ""]))
    check("made" in [file["name"] for file in end["files"]], end["files"])
    equal(runs.look(client, run_id, sinceByte=6)["newOutput"], "done\n")
    equal(runs.cancel(client, run_id)["status"], "ok", "one that is over stays as it is")
    equal({row["runId"]: row["status"] for row in runs.listed(client)}[run_id], "ok")
    contains(_site().client_of("neighbour").tool_error("get_run", {"runId": run_id}), "no such run")
    _close(client, sandbox)
    equal(runs.look(client, run_id)["status"], "ok", "the result outlives the sandbox")


@test("a client that leaves loses nothing of its command", timeout=120)
def _():
    client = _client()
    sandbox = _create(client)
    connection = client.begin_legacy("exec", {"sandboxId": sandbox, "command": "echo $$ > pid; " + WAITS.format("go")})
    wait_until(lambda: _out(client, sandbox, "cat pid 2>/dev/null || true"), 15, "it runs")
    [row] = runs.listed(client, conversationId=client.conversation)
    equal((row["status"], row["language"], "expiresAt" in row), ("running", "sh", False), "its caller still waits")
    connection.close()
    wait_until(lambda: "expiresAt" in runs.listed(client, conversationId=client.conversation)[0], 15, "it is kept")
    _out(client, sandbox, "touch go")
    equal(_ended(client, row["runId"])["output"], "begun\ndone\n")
    _close(client, sandbox)


@test("a session's program outlives its call's wait, and keeps the variables", timeout=120)
def _():
    client = _client()
    code = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.1)\nx = 7\nprint('done')"
    first = client.run(code, session=True, waitMs=100, timeout=60)
    equal(first["status"], "running")
    client.upload("go", b"")
    end = _ended(client, first["runId"])
    equal((end["status"], end["output"], end["sessionStarted"]), ("ok", "begun\ndone\n", True))
    second = client.run("print(x)", session=True, background=True)
    equal(_ended(client, second["runId"])["stdout"], "7\n")


@test("exec's arguments are checked by name, and its results fit its schema")
def _():
    client = _client()
    sandbox = _create(client)
    contains(client.tool_error("exec", {"sandboxId": sandbox}), "command")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "x", "commands": ["y"]}), "command")
    for time_ms in (0, 300, -1):
        contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "x", "timeoutMs": time_ms}),
                 "argument 'timeoutMs' must be from 1000 to 300000 milliseconds")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "commands": ["x"] * 21}), "commands")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "x", "environment": {"LD_PRELOAD": "x"}}), "LD_PRELOAD")
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation}), "language")
    tools = {one["name"]: one for one in client.result("tools/list", headers=LATEST)["tools"]}
    for name, arguments in (("exec", {"sandboxId": sandbox, "command": "echo x > f"}), ("get_sandbox_status", {"sandboxId": sandbox}),
                            ("close_sandbox", {"sandboxId": sandbox}), ("reset_session", {"conversationId": client.conversation})):
        equal(schema.of(LATEST["MCP-Protocol-Version"]).unfit(client.structured(name, arguments), tools[name]["outputSchema"]), [], name)


@test("100 commands in a row leave nothing behind", timeout=120)
def _():
    client, site = _client(), _site()
    sandbox = _create(client)
    _out(client, sandbox, "true")
    housekeeper = _keeper(site, sandbox)
    before = collections.Counter(procs.open_files(housekeeper))
    processes = int(_out(client, sandbox, "ls /proc | grep -c '^[0-9]'"))
    for number in range(100):
        equal(_out(client, sandbox, f"echo {number}"), f"{number}\n")
    # Its record is written behind the answer.
    wait_until(lambda: collections.Counter(procs.open_files(housekeeper)) <= before, 10, "its process has no more files open than before")
    wait_until(lambda: int(_out(client, sandbox, "ls /proc | grep -c '^[0-9]'")) <= processes, 10, "no process is left in the container")
    _close(client, sandbox)


# ---- whose ----

@test("another tenant cannot use, see, read or close it, and gets the answer of an id that never existed (H-33, H-42)", core=True)
def _():
    site = _site()
    client, other = _client(site), site.client_of("neighbour")
    sandbox = _create(client)
    _out(client, sandbox, "echo secret")
    unknown = "sbx_" + secrets.token_hex(12)
    foreign = _container(site, sandbox)
    for tool, more in (("exec", {"command": "id"}), ("get_sandbox_status", {}), ("close_sandbox", {})):
        answers = {other.tool_error(tool, {"sandboxId": name} | more) for name in (sandbox, unknown, foreign, "nonsense", "../../etc/passwd")}
        equal(len(answers), 1, f"answers of {tool}")
    for name in (sandbox, unknown, foreign):
        answer = other.request("resources/read", {"uri": f"containers://{name}/logs"}, headers=LATEST)
        equal(answer.json()["error"]["message"], other.request(
            "resources/read", {"uri": f"containers://{unknown}/logs"}, headers=LATEST).json()["error"]["message"])
    equal(other.structured("get_sandbox_status", {})["sandboxes"], [])
    equal(_out(client, sandbox, "echo mine"), "mine\n")
    _close(client, sandbox)


@test("only images that the operator allows are taken, and only ones that are there; they run in the same bounds (H-34)")
def _():
    client, site = _client(), _site()
    for image in ("alpine", "docker.io/library/busybox", "debian/evil", "sandcgi-runner-workbench", "localhost:5000/debian"):
        contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "image": image}), "does not allow")
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "image": "debian:no-such-tag"}), "missing")
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "language": "cobol"}), "language")
    sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "image": "debian:trixie-slim"})["sandboxId"]
    uid, *words = _out(client, sandbox, "id -u; . /etc/os-release; echo $ID $HOME $XDG_CACHE_HOME; getent hosts localhost | cut -d ' ' -f 1").split()
    check(sites.is_sandbox_user(uid), uid)
    equal(words, ["debian", "/data", "/tmp/.cache", "::1"])
    config = engine.api("GET", f"/containers/{_container(site, sandbox)}/json")["HostConfig"]
    equal((config["ReadonlyRootfs"], config["NetworkMode"], config["CapDrop"], config["Privileged"]), (True, "none", ["ALL"], False))
    check(config["Memory"] and config["PidsLimit"], config)
    _close(client, sandbox)


@test("a tenant has its most, and the server too (H-30)")
def _():
    site = sites.with_settings(SANDBOX_PERSISTENT_MAX="2", SANDBOX_PERSISTENT_SERVER="3")
    client, other = _client(site), site.client_of("neighbour")
    sandboxes = [_create(client), _create(client)]
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "language": "bash"}), "SANDBOX_PERSISTENT_MAX")
    theirs = _create(other)
    contains(other.tool_error("create_sandbox", {"conversationId": other.conversation, "language": "bash"}), "no room")
    _close(client, sandboxes[0])
    _close(other, _create(other))
    for whose, sandbox in ((client, sandboxes[1]), (other, theirs)):
        _close(whose, sandbox)


# ---- logs ----

@test("its output is a resource, text for assistant and user, before and after its end")
def _():
    client = _client()
    templates = client.result("resources/templates/list", headers=LATEST)["resourceTemplates"]
    template = next(one for one in templates if one["uriTemplate"] == "containers://{id}/logs")
    equal(template["annotations"], {"audience": ["assistant", "user"], "priority": 0.5})
    sandbox = _create(client)
    _exec(client, sandbox, "echo first; echo second >&2")
    uri = f"containers://{sandbox}/logs"
    for _ in range(2):
        content = client.result("resources/read", {"uri": uri}, LATEST)["contents"]
        equal([(one["uri"], one["mimeType"], one["text"]) for one in content], [(uri, "text/plain", "first\nsecond\n")])
        _close(client, sandbox)


# ---- their ends ----

@test("a closed one says so to its owner in every call; closing it again changes nothing", core=True)
def _():
    client = _client()
    sandbox = _create(client)
    thread, answers = _in_background(lambda: client.fresh().tool("exec", {"sandboxId": sandbox, "command": "sleep 300", "timeoutMs": 200000}))
    wait_until(lambda: runs.listed(client, conversationId=client.conversation), 15, "it runs")
    equal(_close(client, sandbox)["status"], "closed")
    thread.join(15)
    contains(str(answers), "closed")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "id"}), "closed (by its owner)")
    equal(_close(client, sandbox)["status"], "closed")
    equal(_status(client, sandbox), "closed")


@test("unused it is frozen, the next call wakes it, and unused for longer it expires")
def _():
    site = sites.with_settings(SANDBOX_PERSISTENT_PAUSE="2s", SANDBOX_PERSISTENT_IDLE="20s")
    client = _client(site)
    sandbox = _create(client, idleTimeoutMs=6000)
    _out(client, sandbox, "(while :; do echo x >> /tmp/beat; sleep 0.1; done) >/dev/null 2>&1 & true")
    _wait_status(client, sandbox, "paused")
    equal(engine.api("GET", f"/containers/{_container(site, sandbox)}/json")["State"]["Paused"], True)
    equal(_out(client, sandbox, "echo awake"), "awake\n")
    equal(_status(client, sandbox), "running")
    _wait_status(client, sandbox, "expired")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "id"}), "expired (it was unused for 6 seconds)")
    _gone(site, sandbox, 10)


@test("its whole time ends it even while a command runs")
def _():
    site = sites.with_settings(SANDBOX_PERSISTENT_TOTAL="3s")
    client = _client(site)
    sandbox = _create(client)
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "sleep 60", "timeoutMs": 50000}), "expired")
    _gone(site, sandbox, 10)
    equal(_status(client, sandbox), "expired")


@test("a container that is removed by hand is lost, paused or not, and the next call says so")
def _():
    site = sites.with_settings(SANDBOX_PERSISTENT_PAUSE="2s", SANDBOX_PERSISTENT_IDLE="20s")
    client = _client(site)
    for paused in (False, True):
        sandbox = _create(client)
        if paused:
            _wait_status(client, sandbox, "paused")
        engine.remove(_container(site, sandbox))
        _wait_status(client, sandbox, "lost")
        contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "id"}), "lost")
        equal(_close(client, sandbox)["status"], "lost")


@test("when its supervisor is killed its container ends, and its owner is told that it is lost")
def _():
    site, client = _site(), _client()
    sandbox = _create(client)
    _out(client, sandbox, "(sleep 300 &) ; true")
    os.kill(_keeper(site, sandbox), signal.SIGKILL)
    _gone(site, sandbox)
    _wait_status(client, sandbox, "lost")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "id"}), "lost")


def _again(client, call):
    """Its answer from the next main process. A call that the one before took with it may be made again; any other refusal is one."""
    def ask():
        try:
            return call()
        except OSError:
            pass
        except Failed as problem:
            if not any(word in str(problem) for word in AWAY):
                raise
        client.close()
        return None
    return wait_until(ask, 30, "the next main process answers", pause=0.02)


@test("it outlives the broker's main process, whose successor knows it from the first call on", core=True, timeout=90)
def _():
    site = sites.own({"SANDBOX_PERSISTENT_MAX": "2"})
    client = _client(site)
    sandbox = _create(client)
    _out(client, sandbox, "echo kept > /tmp/kept")
    equal(_cell(client, "x = 5")["status"], "ok")
    os.kill(site.broker(), signal.SIGKILL)
    equal(_again(client, lambda: _out(client, sandbox, "cat /tmp/kept")), "kept\n")
    os.kill(site.broker(), signal.SIGKILL)
    cell = _again(client, lambda: _cell(client, "print(x)"))
    equal((cell["stdout"], cell["sessionStarted"], cell["stateLost"]), ("5\n", False, False))
    os.kill(site.broker(), signal.SIGKILL)
    other = _again(client, lambda: _create(client))  # for which the session gives way
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "language": "bash"}), "SANDBOX_PERSISTENT_MAX")
    os.kill(site.broker(), signal.SIGKILL)
    for one in (sandbox, other):
        equal(_again(client, lambda one=one: _close(client, one))["status"], "closed")
        _gone(site, one, 10)


@test("settings that are read again leave it alone", timeout=90)
def _():
    site = sites.own()
    client = _client(site)
    sandbox = _create(client)
    _out(client, sandbox, "echo kept > /tmp/kept")
    equal(_cell(client, "x = 5")["status"], "ok")
    before = site.broker()
    site.reload()

    def goes_on():
        equal(_again(client, lambda: _out(client, sandbox, "cat /tmp/kept")), "kept\n", "all the while")
        return site.broker() not in (None, before)
    wait_until(goes_on, 20, "another broker has taken over", pause=0)
    goes_on()
    cell = _again(client, lambda: _cell(client, "print(x)"))
    equal((cell["stdout"], cell["sessionStarted"], cell["stateLost"]), ("5\n", False, False))
    equal(_again(client, lambda: _close(client, sandbox))["status"], "closed")
    _gone(site, sandbox, 10)


@test("when the engine is killed it is lost, and nothing of it is left when the engine is back", alone="kills the engine", timeout=150)
def _():
    if not engine.is_ours():
        raise Skip("the engine is not the tests' own")
    site = sites.own()
    client = _client(site)
    sandbox = _create(client)
    _out(client, sandbox, "true")
    engine.kill()
    try:
        _wait_status(client, sandbox, "lost", 60)
        contains(client.tool_error("exec", {"sandboxId": sandbox, "command": "id"}), "lost")
    finally:
        engine.start()
    _gone(site, sandbox, 60)


@test("a server that stops leaves no sandbox behind, paused or not", core=True)
def _():
    site = sites.own({"SANDBOX_PERSISTENT_PAUSE": "2s"})
    client = _client(site)
    sandboxes = [_create(client), _create(client)]
    _wait_status(client, sandboxes[0], "paused")
    _out(client, sandboxes[1], "(sleep 300 &) ; true")
    procs.end(site.process, 40)
    equal(site.all_containers(), [])
    site.process = None


@test("when all processes of the server are killed at once, its container ends by itself and the next server removes it", timeout=90)
def _():
    site = sites.own()
    client = _client(site)
    sandbox = _create(client)
    procs.kill_family(site.process.pid, site.broker(), _keeper(site, sandbox))
    site.process.wait()
    name = _container(site, sandbox)
    wait_until(lambda: not engine.api("GET", f"/containers/{name}/json")["State"]["Running"], 20, "the container ends")
    site.start_server()
    _gone(site, sandbox)


# ---- sessions ----

def _cell(client, code, language="python", **more):
    return client.run(code, language, session=True, **more)


@test("a session keeps variables, functions and imports between calls, and forgets them when it is reset", core=True, timeout=120)
def _():
    client = _client()
    first = _cell(client, "import math\nx = 40\ndef f(n):\n    return n + 2\nprint('one')")
    equal((first["stdout"], first["status"], first["sessionStarted"]), ("one\n", "ok", True))
    second = _cell(client, "print(f(x), math.floor(1.5))")
    equal((second["stdout"], second["sessionStarted"], second["stateLost"]), ("42 1\n", False, False))
    equal(second["sandboxId"], first["sandboxId"])
    equal(_cell(client, "raise ValueError('no')")["status"], "error")
    equal(_cell(client, "import sys; print(x); sys.exit(3)")["exitCode"], 3)
    result = _cell(client, "open('made.txt', 'w').write('x'); print(x)")
    equal((result["stdout"], [one["name"] for one in result["files"]]), ("40\n", ["made.txt"]))
    ended = client.structured("reset_session", {"conversationId": client.conversation})["sessions"]
    equal([one["sandboxId"] for one in ended], [first["sandboxId"]])
    again = _cell(client, "print('x' in globals(), open('made.txt').read())")
    equal((again["stdout"], again["sessionStarted"]), ("False x\n", True))
    client.structured("reset_session", {"conversationId": client.conversation})
    equal(client.structured("reset_session", {"conversationId": client.conversation})["sessions"], [])


@test("a session in TypeScript keeps what a cell declares", timeout=120)
def _():
    client = _client()
    equal(_cell(client, "const greeting: string = 'hello'; function twice(n: number) { return 2 * n }", "typescript")["status"], "ok")
    equal(_cell(client, "console.log(greeting, twice(21))", "typescript")["stdout"], "hello 42\n")
    client.structured("reset_session", {"conversationId": client.conversation, "language": "typescript"})


@test("sessions in Python and TypeScript and exec share one sandbox; a reset of one language leaves the other's variables", timeout=120)
def _():
    client = sites.new_conversation(sites.client())
    first = _cell(client, "import os; x = 1; print(os.uname().nodename)")
    other = _cell(client, "let y = 2; console.log(require('os').hostname())", "typescript")
    equal((first["sandboxId"], first["stdout"]), (other["sandboxId"], other["stdout"]))
    equal(client.structured("exec", {"sandboxId": first["sandboxId"], "command": "uname -n"})["results"][0]["stdout"], first["stdout"])
    client.structured("reset_session", {"conversationId": client.conversation, "language": "typescript"})
    equal(_cell(client, "print(x)")["stdout"], "1\n")
    equal(_cell(client, "console.log(typeof y)", "typescript")["stdout"], "undefined\n")
    equal(len(client.structured("reset_session", {"conversationId": client.conversation})["sessions"]), 1)


@test("a time limit, a crash and too much memory lose a session's state, and say so", timeout=120)
def _():
    client = _client()
    _cell(client, "x = 1")
    for code, status in (("while True: pass", "timeout"), ("import os; os.kill(os.getpid(), 11)", "killed"),
                         ("b = []\nwhile True: b.append(bytearray(10**7))", None)):
        whole = client.run_whole(code, "python", session=True, timeout=20 if status != "timeout" else 2)
        result = whole["structuredContent"]
        check(status in (None, result["status"]) and not result["success"], result)
        if result["stateLost"]:
            contains(str(whole["content"]), "variables are lost")
        else:
            check(status is None and "MemoryError" in result["stderr"], result)
        again = _cell(client, "print('x' in globals())\nx = 1")
        equal(again["stdout"], "True\n" if not result["stateLost"] else "False\n", f"after {status}: {again}")
    client.structured("reset_session", {"conversationId": client.conversation})


# Cells that note the interpreter's process and end it when they are over.
FADING = {
    "python": "import os, threading\nopen('pid', 'w').write(str(os.getpid()))\nx = 1\n"
              "threading.Thread(target=lambda: (open('go').read(), os._exit(7))).start()",
    "typescript": "const x = 1; require('fs').writeFileSync('pid', String(process.pid)); Bun.spawn(['sh', '-c', `cat go; kill -9 ${process.pid}`]);",
}
SEES_X = {"python": "print('x' in globals())", "typescript": "console.log(typeof x !== 'undefined')"}


@test("an interpreter that ends between two calls is reported with the next one, once, in both languages", timeout=180)
def _():
    client = _client()
    client.run("mkfifo go", "bash")
    for language, code in FADING.items():
        first = _cell(client, code, language)
        equal((first["status"], first["stateLost"]), ("ok", False), language)
        _out(client, first["sandboxId"], "echo > go; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.1; done")
        whole = client.run_whole(SEES_X[language], language, session=True)
        result = whole["structuredContent"]
        equal((result["stdout"].lower(), result["sessionStarted"], result["stateLost"]), ("false\n", True, True), language)
        contains(str(whole["content"]), "ended after its last call")
        again = _cell(client, SEES_X[language], language)
        equal((again["sessionStarted"], again["stateLost"]), (False, False), language)
    client.structured("reset_session", {"conversationId": client.conversation})


@test("a session that expired, was killed or ended with the server is reported at the next start", timeout=180)
def _():
    site = sites.own({"SANDBOX_PERSISTENT_IDLE": "4s"})
    client = _client(site)

    def kill(sandbox):
        os.kill(_keeper(site, sandbox), signal.SIGKILL)

    def restart(_):
        site.stop()
        site.start()
        client.close()
    for end, why in ((lambda sandbox: None, "it was unused for 4 seconds"), (kill, "the process that looked after it died"),
                     (restart, "the server was stopped")):
        sandbox = _cell(client, "x = 1")["sandboxId"]
        end(sandbox)
        wait_until(lambda: _status(client, sandbox) not in ("running", "paused"), 30, f"it ends: {why}")  # pylint: disable=cell-var-from-loop
        whole = client.run_whole("print('x' in globals())", "python", session=True)
        result = whole["structuredContent"]
        equal((result["stdout"], result["sessionStarted"], result["stateLost"]), ("False\n", True, True), why)
        contains(str(whole["content"]), why)
        client.structured("reset_session", {"conversationId": client.conversation})


@test("a session refuses a language that keeps no variables")
def _():
    client = _client()
    contains(client.run_error("1", "bash", session=True), "python and typescript")
    check(_site().process.poll() is None, "the server is gone")

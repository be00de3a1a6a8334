"""The server's processes, and the engine, killed in mid-run: the client is answered or cut off, no container outlives its time."""
import http.client
import json
import os
import secrets
import signal
import time

import engine
import fcgi
import pool
import procs
import runs
import sites
from harness import Failed, at_test_end, check, contains, equal, holds_for, in_time, test, wait_until
from mcp import ToolError, end_run

LIMIT = 4  # seconds that the program of a crash test may run
SLACK = 5  # and how much later its container must be gone


class MidRun:
    """A site whose only run is under way, until its limit or until go()."""

    def __init__(self, limit=LIMIT):
        self.limit = limit
        self.site = sites.own()
        self.client = sites.new_conversation(self.site.client())
        self.mark = f"600.{secrets.randbelow(10**9):09}"  # recognisable in the host's process list
        self.connection = self.client.begin_run(f"echo begun; sleep {self.mark} >/dev/null & {runs.UNTIL_GO}echo done", "bash", timeout=limit)
        wait_until(self.processes, 15, "the program runs", pause=0.02)
        self.start = time.monotonic()

    def processes(self):
        """The program's processes, seen from the host."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        if file.read().split(b"\0")[:2] == [b"sleep", self.mark.encode()]:
                            found.append(int(name))
                except OSError:
                    pass
        return found

    def go(self):
        runs.go(self.client)

    def is_done(self):
        """After go() its client has been answered with the whole output."""
        result, status = self.answered()
        equal((status, result["status"], result["stdout"]), (200, "ok", "begun\ndone\n"))

    def in_background(self, timeout=60):
        """Another conversation's run beside it, which has begun."""
        client = sites.new_conversation(self.site.client(timeout=15))
        one = runs.Follower(self.site, client, runs.begin(client, f"echo begun; {runs.UNTIL_GO}echo done", timeout=timeout))
        wait_until(lambda: one.poll(500) and one.output, 30, "it has begun")
        return one

    def kill(self, *pids):
        check(pids and all(pids), f"no process to kill: {pids}")
        procs.signal_all(pids)

    def answered(self):
        """What the client was told; never later than the run could have lasted."""
        return end_run(self.connection, self.limit + SLACK + 5)

    def gone_in_time(self):
        end = self.start + self.limit + SLACK
        wait_until(lambda: not self.processes(), max(0.1, end - time.monotonic()), "the program is gone")

    def removed(self, seconds=15):
        wait_until(lambda: not self.site.containers(), seconds, "the container is removed")

    def serves_again(self, seconds=15):
        works_again(self.site, seconds)


def knows_runs(site, n=1):
    try:
        return pool.status(site)["running"] == n
    except Failed:  # no server answers yet
        return False


def works_again(site, seconds=15):
    def works():
        client = sites.new_conversation(site.client(timeout=10))
        try:
            return client.run("echo again", "bash")["stdout"] == "again\n"
        except (Failed, OSError, http.client.HTTPException):
            return False
        finally:
            client.close()
    wait_until(works, seconds, "the next call works", pause=0.2)


@test("kill -9 of the worker: the client is cut off, its run goes on, get_run has its result, the next call works", core=True)
def _():
    run = MidRun(limit=60)
    row = wait_until(lambda: runs.listed(run.client, conversationId=run.client.conversation), 10, "it is listed")[0]
    run.kill(*wait_until(lambda: len(busy := run.site.busy_workers()) == 1 and busy, 5, "one worker is busy"))
    result, status = run.answered()
    check(status != 200, f"answered {result}")
    check(run.processes(), "the program was ended with the worker")
    run.go()
    result = runs.Follower(run.site, run.site.client(), row["runId"]).to_the_end(30)
    equal((result["status"], result["output"]), ("ok", "begun\ndone\n"))
    run.removed()
    run.serves_again()


@test("kill -9 of the run child: the client gets an error, the container goes, the next call works")
def _():
    run = MidRun()
    run.kill(*run.site.run_children())
    result, status = run.answered()
    equal(status, 200)
    equal(result.get("isError"), True, f"{result}")
    run.gone_in_time()
    run.removed()
    run.serves_again()


@test("kill -9 of the broker: a run that is waited for and one in the background go on, a new broker knows of them and serves, nothing is left", core=True)
def _():
    run = MidRun(limit=60)
    other = run.in_background()
    old = run.site.broker()
    run.kill(old)
    wait_until(lambda: run.site.broker() not in (None, old), 10, "a new broker")
    wait_until(lambda: knows_runs(run.site, 2), 10, "the runs are in its books")
    run.go()
    runs.go(other.client)
    run.is_done()
    result = other.to_the_end(60)
    equal((result["status"], result["output"]), ("ok", "begun\ndone\n"))
    run.removed()
    wait_until(lambda: not run.site.run_children(), 10, "no process of a run is left")
    run.serves_again()


@test("kill -9 of the housekeeper: the run ends as if nothing had happened, a new housekeeper works")
def _():
    run = MidRun(limit=60)
    old = run.site.housekeeper()
    run.kill(old)
    run.go()
    run.is_done()
    run.removed()
    wait_until(lambda: run.site.housekeeper() not in (None, old), 5, "a new housekeeper")
    run.serves_again()


@test("kill -9 of the master: its children end, the container goes, a new start takes over")
def _():
    run = MidRun()
    family = procs.descendants(run.site.process.pid)
    run.kill(run.site.process.pid)
    run.site.process.wait()
    run.answered()
    run.gone_in_time()
    wait_until(lambda: not [pid for pid in family if procs.exists(pid)], LIMIT + SLACK + 5, "all processes have ended")
    run.site.start_server()
    run.site.wait_healthy()
    run.removed()
    run.serves_again()


@test("a call that comes when the broker is gone is told so, not that the engine is down")
def _():
    site = sites.own()
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_code", "arguments": {"language": "bash", "code": "echo x", "conversationId": "away"}}}).encode()
    wait_until(lambda: not site.busy_workers(), 10, "no worker has a request")
    with fcgi.connect(site.front) as held:
        fcgi.begin_request(held, {"SANDCGI_SECRET": site.secret, "SANDCGI_TENANT": "default"}, len(call))
        wait_until(site.busy_workers, 10, "a worker has the request")
        broker = site.broker()
        site.process.kill()
        site.process.wait()
        procs.signal_all([broker])
        wait_until(lambda: not procs.exists(broker), 10, "the broker is gone")
        fcgi.send_body(held, call)
        status, _headers, answer = fcgi.read_answer(held)
    equal(status, 200)
    contains(json.loads(answer)["result"]["content"][0]["text"], "the server's broker is starting or stopping")


@test("kill -9 of the master: another one takes over at once, runs, sessions and sockets outlive it")
def _():
    site = sites.own()
    client = sites.new_conversation(site.client())
    client.run("x = 41", session=True)
    connection = client.begin_run(runs.UNTIL_GO + "echo fine", "bash")
    wait_until(lambda: knows_runs(site), 10, "the run is under way")
    guard = site.process.pid
    for _ in range(2):
        wait_until(lambda: len(procs.descendants(guard)) > 4, 10, "a master and its children")
        master = procs.children(guard)[0]
        os.kill(master, signal.SIGKILL)
        start = time.monotonic()
        wait_until(lambda: _answers(client), 15, "right answers")
        in_time(start, 10, "right answers again")
        wait_until(lambda: procs.children(guard) not in ([], [master]), 15, "another master")  # noqa: B023
    runs.go(client)
    result, status = end_run(connection, 30)
    equal((status, result["stdout"]), (200, "fine\n"))
    equal(client.run("print(x + 1)", session=True)["stdout"], "42\n")
    family = procs.descendants(guard)
    site.process.terminate()
    equal(site.process.wait(60), 0, "status of the guard")
    wait_until(lambda: not any(map(procs.exists, family)), 5, "all processes have ended")


def _answers(client):
    try:
        return client.fresh().run("echo $((40 + 2))", "bash", conversation=client.conversation)["stdout"] == "42\n"
    except Exception:  # pylint: disable=broad-except
        return False


@test("kill -9 of all processes at once: the containers end by themselves, a restart cleans up, a run of the background is told lost (H-18, H-53, H-61)", timeout=90)
def _():
    run = MidRun(limit=8)
    lost = run.in_background(timeout=8)
    procs.kill_family(run.site.process.pid)
    run.site.process.wait()
    _result, status = run.answered()
    check(status != 200, "answered")
    run.gone_in_time()
    run.site.start_server()
    run.site.wait_healthy()
    run.removed()
    equal(lost.to_the_end(30)["status"], "lost")
    run.serves_again()
    wait_until(lambda: all(name.startswith(lost.run_id) for name in os.listdir(f"{run.site.root}/.runs")), 5, "no lock of a dead run is left")


@test("kill -9 of the engine: the client is told, the program ends in time, the server recovers by itself", timeout=150, alone="kills the engine")
def _():
    run = MidRun()
    engine_pid = engine.pid() if engine.is_ours() else None
    engine.kill()
    try:
        result, status = run.answered()
        check(status != 200 or result.get("isError") or result.get("status") in ("killed", "timeout"), f"{status} {result}")
        start = time.monotonic()
        refused = sites.new_conversation(run.site.client()).run_error("print(1)")
        in_time(start, 3, "a clear error at once")
        check("docker.sock" not in refused or "engine" in refused, refused)
        run.gone_in_time()
    finally:
        engine.start()
    check(engine.pid() != engine_pid, "a new engine")
    run.serves_again(30)
    run.removed(30)


@test("kill -9 of worker after worker does not wear the server out", timeout=90)
def _():
    site = sites.own()
    for _ in range(4):
        procs.signal_all(site.settled_workers())
        site.settled_workers()
    works_again(site)


def _foreign(labels, name):
    """A container that is not this server's, started by hand; removed at the end of the test."""
    made = engine.api("POST", f"/containers/create?name={name}", {
        "Image": engine.WORKBENCH, "Entrypoint": ["sleep", "600"], "Labels": labels,
        "HostConfig": {"NetworkMode": "none"}})
    at_test_end(engine.remove, made["Id"])
    engine.api("POST", f"/containers/{made['Id']}/start")
    return made["Id"]


@test("H-29, H-60: containers of another instance and without labels survive restart and sweeps; our orphans do not")
def _():
    site = sites.own()
    word = secrets.token_hex(4)
    past = str(int(time.time()) - 1000)
    ours = {"sandbox.managed": "true", "sandbox.instance": site.instance, "sandbox.run": "ab" * 12, "sandbox.deadline": past}
    survivors = [_foreign(ours | {"sandbox.instance": "0" * 16}, f"sandcgi-{word}"),
                 _foreign(ours | {"sandbox.instance": site.instance + "0"}, f"sandcgi-{word}-longer"),
                 _foreign({"sandbox.instance": site.instance, "sandbox.deadline": past}, f"x-sandcgi-{word}"),
                 _foreign({}, f"sandcgi-{word}-nobody")]
    orphan = _foreign(ours | {"sandbox.deadline": str(int(time.time()) + 1000)}, f"sandcgi-{word}-orphan")
    expired = _foreign(ours, f"sandcgi-{word}-expired")
    procs.end(site.process)
    site.start_server()
    site.wait_healthy()
    for lost in (orphan, expired):
        wait_until(lambda: "Id" not in (engine.api("GET", f"/containers/{lost}/json", ok=None) or {}), 15,  # noqa: B023
                   "our orphan is removed")
    sites.new_conversation(site.client()).run("sleep 2.5", "bash")
    for one in survivors:
        equal(engine.inspect(one)["State"]["Running"], True, one)


@test("two servers on one engine do not touch each other's runs")
def _():
    run = MidRun()
    other = sites.own()
    sites.new_conversation(other.client()).run("true", "bash")
    procs.end(other.process)
    other.start_server()
    other.wait_healthy()
    result, _status = run.answered()
    equal(result["status"], "timeout")


@test("HUP in mid-run: the run ends well, new settings hold, wrong ones are refused and the old stay", core=True)
def _():
    site = sites.own()
    client = sites.new_conversation(site.client())
    connection = client.begin_run(runs.UNTIL_GO + "echo done", "bash")
    wait_until(site.containers, 10, "a container")
    site.settings |= {"SANDBOX_TIMEOUT": "1s", "SANDBOX_CODE_MAX": "1k"}
    site.reload()

    def refuses():
        try:
            client.run("#" * 2000)
            return False
        except ToolError as refused:
            contains(refused.text, "code")
            return True
    wait_until(refuses, 10, "the new settings hold")
    runs.go(client)
    result, status = end_run(connection, 15)
    equal((status, result["status"], result["stdout"]), (200, "ok", "done\n"))
    equal(client.run("sleep 20", "bash")["status"], "timeout")
    site.settings |= {"SANDBOX_NETWORK": "perhaps"}
    site.reload()
    wait_until(lambda: "perhaps" in site.log() or "SANDBOX_NETWORK" in site.log().split("settings not reloaded")[-1], 5, "a log line")
    holds_for(lambda: client.request("ping").status == 200, 1, "the server answers")
    check(refuses(), "the settings of before")


@test("HUP again and again under load loses no call")
def _():
    site = sites.own()
    client = site.client()
    for _ in range(5):
        os.kill(site.process.pid, signal.SIGHUP)
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            equal(client.request("ping").status, 200)
    works_again(site)
    wait_until(lambda: len(site.processes()) == 8, 20, "broker, hub and six workers, as before")


@test("TERM drains: a run ends well and is answered, one of the background ends well, too; the server ends with status 0, the next one has the result",
      timeout=120, core=True)
def _():
    site = sites.own()
    client = sites.new_conversation(site.client())
    connection = client.begin_run("sleep 2; echo done", "bash")
    kept = runs.Follower(site, client.fresh(), runs.begin(client, "sleep 2; echo kept"))
    wait_until(lambda: knows_runs(site, 2), 10, "both are under way")
    os.kill(site.process.pid, signal.SIGTERM)
    result, status = end_run(connection, 15)
    equal((status, result["status"], result["stdout"]), (200, "ok", "done\n"))
    equal(site.process.wait(45), 0, "exit status")
    equal(site.containers(), [])
    site.start_server()
    site.wait_healthy()
    result = kept.to_the_end(30)
    equal((result["status"], result["output"]), ("ok", "kept\n"))


@test("TERM twice ends at once, and the container with it", timeout=60)
def _():
    run = MidRun(limit=50)  # far longer than what follows may take
    os.kill(run.site.process.pid, signal.SIGTERM)
    wait_until(lambda: "waiting for running programs" in run.site.log(), 10, "the first TERM is taken")
    holds_for(lambda: run.site.process.poll() is None, 0.3, "it waits for the run")
    os.kill(run.site.process.pid, signal.SIGTERM)
    equal(run.site.process.wait(20), 0, "exit status")
    result, status = run.answered()
    check(status != 200 or result["status"] == "cancelled", f"{status} {result}")  # 200, unless the server had to be killed
    wait_until(lambda: not run.processes(), 15, "the program is gone")
    run.removed()
    check(time.monotonic() - run.start < run.limit, "only its own limit ended the program")

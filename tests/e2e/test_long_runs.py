"""Runs of minutes, by handle and by task, while parts of the server are ended or stopped: the result is right.

SANDCGI_TEST_LONG=1: three minutes instead of fourteen seconds.
"""
import os
import signal
import threading
import time

import engine
import pool
import procs
import runs
import sites
import warm
from harness import Failed, Skip, at_test_end, check, equal, test, wait_until

LONG = bool(os.environ.get("SANDCGI_TEST_LONG"))
SECONDS = 180 if LONG else 14
KILL_EVERY = 5
STOP_FOR = 10 if LONG else 3
SLACK = 120  # a loaded machine, and an engine that was away

CODE = f"""import time
for n in range({SECONDS * 2}):
    print("tick", n, flush=True)
    time.sleep(0.5)
open("result.txt", "w").write("the end")
print("the end")
"""
OUTPUT = "".join(f"tick {n}\n" for n in range(SECONDS * 2)) + "the end\n"
LIMIT = SECONDS + SLACK


def _site(**settings):
    return sites.own({"SANDBOX_TIMEOUT_MAX": f"{LIMIT + 60}s", "SANDBOX_WAIT_MAX": "300s"} | settings)


def _is_right(result):
    equal((result["status"], result["exitCode"], result["output"]), ("ok", 0, OUTPUT))
    equal([one["name"] for one in result["files"]], ["result.txt"])


class Trouble(threading.Thread):
    """Does things to the server until stop(); each is (seconds between, function)."""

    def __init__(self, *things):
        super().__init__(daemon=True)
        self.things = things
        self.done = {thing.__name__: 0 for _, thing in things}
        self._over = threading.Event()
        at_test_end(self.stop)
        self.start()

    def run(self):
        due = [time.monotonic() + every for every, _ in self.things]
        while not self._over.wait(0.1):
            for n, (every, thing) in enumerate(self.things):
                if time.monotonic() >= due[n]:
                    thing()
                    self.done[thing.__name__] += 1
                    due[n] = time.monotonic() + every

    def stop(self):
        self._over.set()
        if self.is_alive():
            self.join()


def _worker_killer(site):
    def workers_killed():
        procs.signal_all(site.workers())
    return workers_killed


def _nginx_reloader(site):
    def nginx_reloaded():
        os.kill(site.nginx_process.pid, signal.SIGHUP)
    return nginx_reloaded


def engine_stopped():
    victim = engine.pid()
    os.kill(victim, signal.SIGSTOP)
    try:
        time.sleep(STOP_FOR)
    finally:
        os.kill(victim, signal.SIGCONT)


@test(f"a run of {SECONDS} s through a client that never waits longer than 10 s: increments and result are right", timeout=LIMIT + 60)
def _():
    site = _site()
    client = sites.new_conversation(site.client(timeout=10))
    follower = runs.Follower(site, client, runs.begin(client, CODE, "python", timeout=LIMIT))
    _is_right(follower.to_the_end(LIMIT))
    equal(follower.output, OUTPUT)
    check(follower.polls >= SECONDS // 10, f"{follower.polls} polls")
    equal(client.download(runs.look(client, follower.run_id)["files"][0]["url"]).body, b"the end")


@test("a run_code that waits as long as it may answers with a handle before the client's patience ends", timeout=LIMIT + 60)
def _():
    site = _site(SANDBOX_WAIT="5s")
    client = sites.new_conversation(site.client(timeout=15))
    first = client.run(CODE, timeout=LIMIT)
    equal(first["status"], "running")
    follower = runs.Follower(site, client, first["runId"])
    _is_right(follower.to_the_end(LIMIT))
    equal(follower.output, OUTPUT)


@test(f"the same while workers are killed every {KILL_EVERY} s and nginx is reloaded", timeout=LIMIT + 60)
def _():
    site = _site()
    client = sites.new_conversation(site.client(timeout=15))
    follower = runs.Follower(site, client, runs.begin(client, CODE, "python", timeout=LIMIT))
    trouble = Trouble((KILL_EVERY, _worker_killer(site)), (SECONDS / 3, _nginx_reloader(site)))
    _is_right(follower.to_the_end(LIMIT))
    trouble.stop()
    equal(follower.output, OUTPUT)
    check(all(trouble.done.values()), f"{trouble.done}")


@test(f"the same while the engine is stopped for {STOP_FOR} s", timeout=LIMIT + 60)
def _():
    if not engine.is_ours():
        raise Skip("DOCKER_HOST names an engine that is not the tests' own: it is not stopped")
    site = _site()
    client = sites.new_conversation(site.client(timeout=30))
    follower = runs.Follower(site, client, runs.begin(client, CODE, "python", timeout=LIMIT))
    wait_until(lambda: follower.poll(500) and follower.output, 30, "it has begun")
    engine_stopped()
    _is_right(follower.to_the_end(LIMIT))
    equal(follower.output, OUTPUT)


@test("the same as a task: created, looked at, completed with run_code's result, while workers are killed", timeout=LIMIT + 60)
def _():
    site = _site(SANDBOX_WAIT="2s")
    client = sites.new_conversation(site.client(timeout=15))
    task = runs.Task(client, CODE, "python", timeout=LIMIT)
    equal(task.get()["status"], "working")
    trouble = Trouble((KILL_EVERY, _worker_killer(site)), (SECONDS / 3, _nginx_reloader(site)))
    ended = task.to_the_end(LIMIT)
    trouble.stop()
    equal(ended["status"], "completed")
    _is_right(ended["result"]["structuredContent"])


@test("a task that is cancelled ends its run")
def _():
    site = _site(SANDBOX_WAIT="1s")
    client = sites.new_conversation(site.client())
    task = runs.Task(client, "sleep 100", "bash", timeout=100)
    task.cancel()
    equal(task.to_the_end(30)["status"], "cancelled")
    wait_until(lambda: not site.containers(), 15, "no container is left")


@test("the worker that waits for a run is killed: the run goes on, the next get_run has its result", timeout=90)
def _():
    site = _site()
    client = sites.new_conversation(site.client())
    connection = client.begin_run("sleep 4; echo done", "bash")
    row = wait_until(lambda: runs.listed(site.client(), conversationId=client.conversation), 20, "it is listed")[0]
    procs.signal_all(site.busy_workers())
    connection.close()
    result = runs.Follower(site, site.client(), row["runId"]).to_the_end(30)
    equal((result["status"], result["output"]), ("ok", "done\n"))


@test("kill -9 of the broker in mid-run: the run goes on under the new one or is told lost; no container is left", timeout=120)
def _():
    site = _site()
    client = sites.new_conversation(site.client(timeout=15))
    followers = [runs.Follower(site, client, runs.begin(client, "echo begun; sleep 6; echo done", timeout=60)) for _ in range(3)]
    for one in followers:
        wait_until(lambda: one.poll(500) and one.output, 30, "it has begun")  # noqa: B023
    victim = site.broker()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: site.broker() not in (None, victim), 20, "a new broker")
    for one in followers:
        result = one.to_the_end(60)
        check(result["status"] in ("ok", "lost"), f"{result}")
        if result["status"] == "ok":
            equal(result["output"], "begun\ndone\n")
    wait_until(lambda: not site.containers(), 30, "no container is left")
    wait_until(lambda: not site.run_children(), 10, "no process of a run is left")
    equal(sites.new_conversation(client).run("echo again", "bash")["stdout"], "again\n")


@test("after kill -9 of the broker a run that goes on can be cancelled, and counts", timeout=120)
def _():
    site = _site(SANDBOX_MAX_RUNS="1", SANDBOX_QUEUE="0")
    client = sites.new_conversation(site.client(timeout=15))
    follower = runs.Follower(site, client, runs.begin(client, "echo begun; sleep 60", timeout=60))
    wait_until(lambda: follower.poll(500) and follower.output, 30, "it has begun")
    victim = site.broker()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: site.broker() not in (None, victim), 20, "a new broker")
    wait_until(lambda: [one for one in _patient_list(client) if one["status"] == "running"], 20, "it is known again")
    wait_until(lambda: pool.status(site)["running"] == 1, 20, "it has been taken over")
    whole = client.run_whole("true", "bash")
    equal((whole.get("isError"), whole["structuredContent"]["status"]), (True, "busy"), "its place is taken")
    equal(runs.cancel(client, follower.run_id)["status"], "cancelled")
    wait_until(lambda: not site.containers(), 15, "its container is gone")
    equal(client.run("echo again", "bash")["stdout"], "again\n")


def _patient_list(client):
    try:
        return runs.listed(client)
    except (*runs.BROKEN, Failed):
        return []


@test("a restart of the whole server in mid-run: the result is there or the run is told lost, nothing is left", timeout=120)
def _():
    site = _site()
    client = sites.new_conversation(site.client(timeout=15))
    follower = runs.Follower(site, client, runs.begin(client, "echo begun; sleep 5; echo done", timeout=60))
    wait_until(lambda: follower.poll(500) and follower.output, 30, "it has begun")
    procs.signal_all([site.process.pid, *procs.descendants(site.process.pid)])
    site.process.wait()
    site.start_server()
    site.wait_healthy()
    result = follower.to_the_end(60)
    equal(result["status"], "lost")
    wait_until(lambda: not site.containers(), 30, "no container is left")


@test("TERM in mid-run of the background: the server waits for it, and the result can be fetched after the next start", timeout=120)
def _():
    site = _site()
    client = sites.new_conversation(site.client(timeout=15))
    follower = runs.Follower(site, client, runs.begin(client, "echo begun; sleep 4; echo done", timeout=60))
    wait_until(lambda: follower.poll(500) and follower.output, 30, "it has begun")
    procs.end(site.process, 60)
    site.start_server()
    site.wait_healthy()
    result = follower.to_the_end(30)
    equal((result["status"], result["output"]), ("ok", "begun\ndone\n"))
    wait_until(lambda: not warm.container_of(site, follower.run_id), 10, "no container is left")

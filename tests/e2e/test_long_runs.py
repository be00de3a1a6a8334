"""Runs of minutes, by handle and by task, while parts of the server are ended or stopped: the result is right.

SANDCGI_TEST_LONG=1: three minutes instead of ten seconds.
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
from harness import Failed, Skip, at_test_end, check, equal, test, wait_until

LONG = bool(os.environ.get("SANDCGI_TEST_LONG"))
SECONDS = 180 if LONG else 10
KILL_EVERY = 5 if LONG else 3
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


def _settings(**more):
    return {"SANDBOX_TIMEOUT_MAX": f"{LIMIT + 60}s", "SANDBOX_WAIT_MAX": "300s"} | more


def _site(**more):
    return sites.with_settings(**_settings(**more))


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


@test("a run_code that waits as long as it may answers with a handle before the client's patience ends; increments, result and file are right", timeout=LIMIT + 60)
def _():
    site = _site(SANDBOX_WAIT="2s")
    client = sites.new_conversation(site.client(timeout=10))
    first = client.run(CODE, timeout=LIMIT)
    equal(first["status"], "running")
    follower = runs.Follower(site, client, first["runId"])
    _is_right(follower.to_the_end(LIMIT))
    equal(follower.output, OUTPUT)
    equal(client.download(runs.look(client, follower.run_id)["files"][0]["url"]).body, b"the end")


@test(f"a run by its handle and one as a task come to their right ends while workers are killed every {KILL_EVERY} s and nginx is reloaded", timeout=LIMIT + 60)
def _():
    site = sites.own(_settings(SANDBOX_WAIT="2s"))
    client, other = (sites.new_conversation(site.client(timeout=15)) for _ in range(2))
    follower, task = runs.Follower(site, client, runs.begin(client, CODE, "python", timeout=LIMIT)), runs.Task(other, CODE, "python", timeout=LIMIT)
    equal(task.get()["status"], "working")
    trouble = Trouble((KILL_EVERY, _worker_killer(site)), (SECONDS / 3, _nginx_reloader(site)))
    _is_right(follower.to_the_end(LIMIT))
    ended = task.to_the_end(LIMIT)
    trouble.stop()
    equal(follower.output, OUTPUT)
    equal(ended["status"], "completed")
    _is_right(ended["result"]["structuredContent"])
    check(all(trouble.done.values()), f"{trouble.done}")


@test(f"a run comes to its right end while the engine is stopped for {STOP_FOR} s", timeout=LIMIT + 60, alone="stops the engine")
def _():
    if not engine.is_ours():
        raise Skip("DOCKER_HOST names an engine that is not the tests' own: it is not stopped")
    site = _site(SANDBOX_WAIT="2s")
    client = sites.new_conversation(site.client(timeout=30))
    follower = runs.Follower(site, client, runs.begin(client, CODE, "python", timeout=LIMIT))
    wait_until(lambda: follower.poll(500) and follower.output, 30, "it has begun")
    engine_stopped()
    _is_right(follower.to_the_end(LIMIT))
    equal(follower.output, OUTPUT)


@test("a task that is cancelled ends its run", core=True)
def _():
    site = _site(SANDBOX_WAIT="2s")
    client = sites.new_conversation(site.client())
    task = runs.Task(client, "sleep 100", "bash", timeout=100, background=True)
    task.cancel()
    equal(task.to_the_end(30)["status"], "cancelled")
    wait_until(lambda: not site.containers(), 15, "no container is left")


@test("after kill -9 of the broker a run that goes on can be cancelled, and counts", timeout=120)
def _():
    site = sites.own(_settings(SANDBOX_MAX_RUNS="1", SANDBOX_QUEUE="0"))
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

"""Runs, their handles, and their order: waiting, polling, cancelling, disconnecting, queueing."""
import json
import os
import random
import re
import secrets
import statistics
import time

import pool
import procs
import runs
import sites
import warm
from harness import PATIENCE, check, contains, equal, holds_for, in_time, test, wait_until
from mcp import API, ToolError, end_run
from streams import modern_headers, modern_message, open_modern

ABANDONED = int(os.environ.get("SANDCGI_TEST_ABANDONED") or 100)
CROWD = int(os.environ.get("SANDCGI_TEST_CROWD") or 200)
TICKS = "for n in 1 2 3 4 5 6; do echo tick $n; sleep 0.3; done; echo last >&2; exit 3"
ALL_TICKS = "".join(f"tick {n}\n" for n in range(1, 7))


def gone(site, run_id, seconds=10):
    wait_until(lambda: not warm.container_of(site, run_id), seconds, f"the container of run {run_id} is gone")


@test("waitMs: run_code answers then with a handle and the output so far; get_run gives the rest, in run_code's shape", core=True)
def _():
    client = sites.client()
    start = time.monotonic()
    first = client.run("echo tick 1; until [ -e go ]; do sleep 0.1; done; rm go; " + TICKS.replace(" 1 ", " ", 1), "bash", waitMs=3000)
    in_time(start, 6, "answered")
    equal((first["status"], first["exitCode"], first["signal"], first["success"]), ("running", None, None, False))
    check(time.time() < first["expiresAt"] < time.time() + 86400, f"expiresAt {first['expiresAt']}")
    equal(first["stdout"], "tick 1\n")
    equal(first["nextByte"], len(first["output"]))
    client.upload("go", b"")
    last = runs.look(client, first["runId"], waitMs=20000)
    equal((last["status"], last["exitCode"], last["stdout"], last["stderr"]), ("error", 3, ALL_TICKS, "last\n"))
    whole = client.run(TICKS, "bash")
    equal(set(whole) - set(last), set(), "fields that run_code's result has more")
    equal({name: last[name] for name in ("status", "exitCode", "stdout", "stderr", "truncation", "files")},
          {name: whole[name] for name in ("status", "exitCode", "stdout", "stderr", "truncation", "files")})
    again = runs.look(client, first["runId"])
    equal({**again, "newOutput": None}, {**last, "newOutput": None}, "the result, asked for again")


@test("run_code's answer names get_run and the handle in words")
def _():
    client = sites.client()
    whole = client.run_whole("sleep 2", "bash", waitMs=100)
    text = " ".join(block.get("text", "") for block in whole["content"])
    contains(text, "get_run")
    contains(text, whole["structuredContent"]["runId"])
    runs.cancel(client, whole["structuredContent"]["runId"])


@test("sinceByte: increments put together are the output, each byte once; behind the end there is nothing", core=True)
def _():
    client = sites.client()
    run_id = runs.begin(client, TICKS)
    follower = runs.Follower(sites.shared(), client, run_id)
    last = follower.to_the_end(30)
    equal(follower.output, last["output"])
    check(follower.polls > 3, f"{follower.polls} polls: it did not tell what was new")
    for since in (last["nextByte"], last["nextByte"] + 1000, 1 << 52):
        beyond = runs.look(client, run_id, sinceByte=since)
        equal((beyond["newOutput"], beyond["nextByte"]), ("", last["nextByte"]))
    equal(runs.look(client, run_id, sinceByte=7)["newOutput"], last["output"][7:])


@test("output in odd pieces (half characters, NUL, ANSI, no newline) arrives whole in increments")
def _():
    client = sites.client()
    code = r"""
import sys, time
for part in (b'\xe2\x82', b'\xac a\x00b', b'\x1b[31mred', b'\xff\xfe', b' no newline'):
    sys.stdout.buffer.write(part); sys.stdout.buffer.flush(); time.sleep(0.2)
"""
    follower = runs.Follower(sites.shared(), client, runs.begin(client, code, "python"))
    last = follower.to_the_end(30)
    equal(follower.output, last["output"])
    contains(follower.output, "€ a")
    contains(follower.output, "no newline")


@test("background: answered at once, listed while it goes on and afterwards, found by conversation", core=True)
def _():
    client = sites.client()
    start = time.monotonic()
    run_id = runs.begin(client, "until [ -e go ]; do sleep 0.1; done; echo done")
    in_time(start, 5, "answered at once")
    row = next(one for one in runs.listed(client) if one["runId"] == run_id)
    equal((row["status"], row["language"], row["conversationId"]), ("running", "bash", client.conversation))
    equal([one["runId"] for one in runs.listed(client, conversationId=client.conversation)], [run_id])
    equal(runs.listed(client, conversationId=client.conversation + "x"), [])
    client.upload("go", b"")
    equal(runs.look(client, run_id, waitMs=20000)["stdout"], "done\n")
    equal(next(one for one in runs.listed(client) if one["runId"] == run_id)["status"], "ok")


@test("cancel_run: the program and its container go, the output so far stays; again, or too late, changes nothing", core=True)
def _():
    site, client = sites.shared(), sites.client()
    run_id = runs.begin(client, "echo begun; sleep 60")
    wait_until(lambda: runs.look(client, run_id, sinceByte=0)["newOutput"] == "begun\n", 20, "it has begun")
    start = time.monotonic()
    equal(runs.cancel(client, run_id)["status"], "cancelled")
    gone(site, run_id)
    in_time(start, 10, "the container is gone")
    for _ in range(2):
        result = runs.cancel(client, run_id)
        equal((result["status"], result["stdout"], result["success"]), ("cancelled", "begun\n", False))
    equal(runs.look(client, run_id)["status"], "cancelled")
    ended = runs.begin(client, "true")
    equal(runs.look(client, ended, waitMs=20000)["status"], "ok")
    equal(runs.cancel(client, ended)["status"], "ok")


@test("a run that is cancelled answers all its waiters: run_code and get_run")
def _():
    site, client = sites.shared(), sites.client()
    connection = client.begin_run("echo begun; sleep 60", "bash")
    other = site.client()
    row = wait_until(lambda: [one for one in runs.listed(other) if one["conversationId"] == client.conversation], 20, "it is listed")[0]
    params = {"name": "get_run", "arguments": {"runId": row["runId"], "waitMs": 30000}}
    waiter = open_modern(other.fresh(), "tools/call", params, name="get_run", meta={"progressToken": "waits"}).begin()
    while "begun" not in waiter.next(20)["params"]["message"]:
        pass  # then it waits
    runs.cancel(other, row["runId"])
    result, status = end_run(connection, 20)
    equal((status, result["status"]), (200, "cancelled"))
    equal(waiter.result(20)["result"]["structuredContent"]["status"], "cancelled")


@test("run ids: unknown, foreign and malformed ones get the same bytes, from get_run and cancel_run (H-59)", core=True)
def _():
    site = sites.shared()
    client, foreign_client = (site.client_of(f"tenant-{secrets.token_hex(4)}") for _ in range(2))
    foreign = runs.begin(foreign_client, "sleep 30")
    ended = runs.begin(foreign_client, "true")
    runs.look(foreign_client, ended, waitMs=20000)
    unsaved = client.run("true", "bash")["runId"]
    for tool in ("get_run", "cancel_run"):
        texts = {client.tool_error(tool, {"runId": run_id}) for run_id in
                 ("0" * 24, foreign, ended, foreign.upper(), foreign + "0", "../" + foreign, "x", "\u00e9" * 24, unsaved, foreign[:-1])}
        equal(len(texts), 1, f"answers of {tool}: {texts}")
        contains(texts.pop(), "no such run")
    equal(runs.listed(client), [])
    equal(runs.look(foreign_client, foreign, waitMs=0)["status"], "running", "it was not ended by another")
    runs.cancel(foreign_client, foreign)


@test("wrong arguments: negative numbers, fractions, wrong types are refused by name")
def _():
    client = sites.client()
    run_id = "0" * 24
    for tool, arguments, word in (("run_code", runs.arguments_of(client, "true", waitMs=0.5), "waitMs"),
                                  ("run_code", runs.arguments_of(client, "true", waitMs=-1), "waitMs"),
                                  ("run_code", runs.arguments_of(client, "true", background="maybe"), "background"),
                                  ("get_run", {"runId": run_id, "waitMs": "long"}, "waitMs"),
                                  ("get_run", {"runId": run_id, "sinceByte": -1}, "sinceByte"),
                                  ("get_run", {"runId": run_id, "sinceByte": "all"}, "sinceByte"),
                                  ("get_run", {}, "runId"), ("cancel_run", {"runId": 7}, "runId")):
        contains(client.tool_error(tool, arguments), word, f"{tool} {arguments}")


@test("a modern client that closes its stream cancels: the container is gone within seconds", core=True)
def _():
    site, client = sites.shared(), sites.client()

    def goes_on():
        return [one for one in runs.listed(client, conversationId=client.conversation) if one["status"] == "running"]
    for wait in (0.0, 0.5):
        stream = runs.open_call(client, "echo begun; sleep 60")
        row = wait_until(goes_on, 20, "it runs")[0]
        time.sleep(wait)
        start = time.monotonic()
        stream.close()
        wait_until(lambda: not warm.container_of(site, row["runId"]), 10, "the container is gone")  # noqa: B023
        wait_until(lambda: not goes_on(), 10, "no run goes on")
        in_time(start, 10, "the run is over")


@test("a legacy client that disconnects leaves its run: list_runs finds it, get_run has the result", core=True)
def _():
    client = sites.client()
    connection = client.begin_run("until [ -e go ]; do sleep 0.1; done; echo done", "bash")
    row = wait_until(lambda: runs.listed(client, conversationId=client.conversation), 20, "it is listed")[0]
    connection.close()
    wait_until(lambda: "expiresAt" in runs.listed(client, conversationId=client.conversation)[0], 15, "it is kept")
    client.upload("go", b"")
    result = runs.look(client, row["runId"], waitMs=20000)
    equal((result["status"], result["stdout"]), ("ok", "done\n"))


@test("live output: each line comes as progress within a second or so, through nginx, in order, none twice", core=True)
def _():
    client = sites.client()
    code = "import time\nfor n in range(5):\n    print('line', n, time.time(), flush=True)\n    time.sleep(0.5)\n"
    stream = runs.open_call(client, code, "python", meta={"progressToken": "live"}).begin()
    check(stream.is_stream(), "an event stream")
    seen, late, progress = [], [], -1
    while True:
        message = stream.next(30)
        if "method" not in message:
            break
        equal((message["method"], message["params"]["progressToken"]), ("notifications/progress", "live"))
        check(message["params"]["progress"] > progress, "progress grows")
        progress = message["params"]["progress"]
        for n, at in re.findall(r"line (\d) ([\d.]+)", message["params"].get("message", "")):
            seen.append(int(n))
            late.append(time.time() - float(at))
    equal(seen, [0, 1, 2, 3, 4])
    check(statistics.median(late) < PATIENCE, f"seconds after they were printed: {late}")
    equal(message["result"]["structuredContent"]["status"], "ok")


@test("live output that is no text: the stream stays whole, what is odd is shown in another way")
def _():
    client = sites.client()
    code = r"printf '\xff\xfe\n'; printf 'a\0b\n'; printf '\033[31mred\033[0m\n'; printf 'no newline'; sleep 1; head -c 3000000 /dev/zero | tr '\0' x"
    stream = runs.open_call(client, code, meta={"progressToken": 7}).begin()
    answer = stream.result(60)
    text = "".join(one["params"].get("message", "") for one in stream.before)
    contains(text, "red")
    contains(text, "no newline")
    check(len(text) < 3 << 20, "what comes too fast is skipped or joined")
    equal(answer["result"]["structuredContent"]["truncation"]["stdout"]["total"], 3000000 + 3 + 4 + 13 + 10)


FEW_KEPT = {"SANDBOX_BACKGROUND_MAX": "2", "SANDBOX_RESULT_TTL": "10s"}


@test("background runs of a tenant are limited; a place is free again when one ends")
def _():
    site = sites.with_settings(**FEW_KEPT)
    client = sites.new_conversation(site.client())
    first, second = (runs.begin(client, "sleep 60") for _ in range(2))
    whole = client.run_whole("true", "bash", background=True)
    equal((whole["isError"], whole["structuredContent"]["status"]), (True, "busy"))
    equal(client.run("echo others", "bash")["stdout"], "others\n")
    runs.cancel(client, first)
    wait_until(lambda: not client.run_whole("true", "bash", background=True).get("isError"), 15, "a place is free")
    runs.cancel(client, second)


@test("busy: over the queue's bound a call is answered at once, with the time to come back and the queue's length", core=True)
def _():
    site = sites.with_settings(SANDBOX_MAX_RUNS="1", SANDBOX_QUEUE="2", SANDCGI_WORKERS="8")
    holder = sites.new_conversation(site.client())
    held = runs.begin(holder, "sleep 60")
    waiting = [sites.new_conversation(site.client()).begin_run("echo mine", "bash") for _ in range(4)]
    client = sites.new_conversation(site.client())
    wait_until(lambda: pool.status(site)["queued"] == 2, 20, "two wait")
    start = time.monotonic()
    whole = client.run_whole("true", "bash")
    in_time(start, 5, "answered at once")
    refused = whole["structuredContent"]
    equal((whole["isError"], refused["status"]), (True, "busy"))
    check(refused["retryAfterMs"] > 0 and refused["position"] >= 1, f"{refused}")
    time.sleep(0.6)
    runs.cancel(holder, held)
    answers = [end_run(connection, 30)[0] for connection in waiting]
    statuses = sorted(answer.get("status") or answer["structuredContent"]["status"] for answer in answers)
    equal(statuses.count("ok") + statuses.count("busy"), len(waiting), f"{statuses}")
    check(1 <= statuses.count("ok") <= 2, f"those that had waited: {statuses}")
    check(any(answer.get("queueMs", 0) > 500 for answer in answers), f"queueMs: {[answer.get('queueMs') for answer in answers]}")


# Waits for another one, or until its time is over, and says how many there are.
OVERLAP = ("me=on.$(cat /proc/sys/kernel/random/uuid); touch $me; for n in $(seq {tenths}); do [ $(ls on.* | wc -l) -gt 1 ] && break; "
           "sleep 0.1; done; ls on.* | wc -l; {end}")


@test("SANDBOX_CONVERSATION_RUNS=1 lets a conversation's runs go one after the other; others go on meanwhile", timeout=90)
def _():
    for limit, extreme, code in (("1", max, OVERLAP.format(tenths=15, end="rm $me")), ("3", min, OVERLAP.format(tenths=200, end=""))):
        site = sites.with_settings(SANDBOX_CONVERSATION_RUNS=limit, SANDCGI_WORKERS="8")
        shared = sites.new_conversation(site.client())
        clients = [site.client() for _ in range(3)]
        for one in clients:
            one.conversation = shared.conversation
        jobs = [lambda one=one, code=code: one.run(code, "bash") for one in clients]
        jobs.append(lambda: sites.new_conversation(site.client()).run("echo other", "bash"))  # noqa: B023
        results = warm.together(jobs)
        equal(results.pop()["stdout"], "other\n")
        counts = [int(result["stdout"]) for result in results]
        equal(extreme(counts) > 1, limit == "3", f"runs at the same time with {limit}: {counts}")


def _median_wait(client, n):
    took = []
    for _ in range(n):
        start = time.monotonic()
        equal(sites.new_conversation(client).run("true", "bash")["status"], "ok")
        took.append(time.monotonic() - start)
    return statistics.median(took)


@test(f"{CROWD} calls of one tenant at once: another's wait little longer, memory stays bounded, all are answered", timeout=400)
def _():
    site = sites.own({"SANDBOX_MAX_RUNS": "4", "SANDBOX_QUEUE": "40", "SANDCGI_WORKERS": "48"}, nginx={"CONNS": 2000})
    other = site.client_of("other")
    alone = _median_wait(other, 7)
    memory = max(map(procs.private_memory, [site.broker(), *site.workers()]))
    crowd = []
    for _ in range(CROWD):
        crowd.append(sites.new_conversation(site.client()).begin_run("sleep 0.2", "bash"))
    amid = _median_wait(other, 7)
    after = max(map(procs.private_memory, [site.broker(), *site.workers()]))
    statuses = {}
    for connection in crowd:
        result, status = end_run(connection, 120)
        key = (result.get("status") or result["structuredContent"]["status"]) if status == 200 else status
        statuses[key] = statuses.get(key, 0) + 1
    equal(sum(statuses.values()), CROWD)
    equal(set(statuses) - {"ok", "busy"}, set(), f"{statuses}")
    check(amid < 2 * alone + 2 * PATIENCE, f"median wait {alone:.2f} s alone, {amid:.2f} s amid the crowd ({statuses})")
    check(after - memory < 32 << 20, f"{(after - memory) >> 20} MB more")


class Abandoner:
    """Starts runs and leaves them at random moments, as modern clients (cancelled) and as legacy ones (left alone)."""

    def __init__(self, site):
        self.site = site
        self.random = random.Random(5)

    def one(self, n):
        client = sites.new_conversation(self.site.client())
        wait = self.random.uniform(0, 0.8)
        if n % 2:
            connection = client.begin_run("sleep 1; echo left", "bash")
        else:
            connection = client.connect()
            params = {"name": "run_code", "arguments": runs.arguments_of(client, "sleep 60")}
            connection.request("POST", API, json.dumps(modern_message("tools/call", params)),
                               client.headers(modern_headers("tools/call", "run_code")))
        time.sleep(wait)
        connection.close()

    def lane(self, numbers):
        for n in numbers:
            self.one(n)
        return True


@test(f"{ABANDONED} runs started and abandoned at random moments leave nothing behind", timeout=180 + ABANDONED)
def _():
    site = sites.own({"SANDCGI_WORKERS": "12", "SANDBOX_QUEUE": "500"})
    client = sites.new_conversation(site.client())
    client.run("true", "bash")
    before = runs.Footprint(site)
    abandoner = Abandoner(site)
    for problem in warm.together([lambda lane=lane: abandoner.lane(range(lane, ABANDONED, 4)) for lane in range(4)]):
        check(problem is True, f"{problem!r}")
    wait_until(lambda: not [one for one in runs.listed(client) if one["status"] == "running"], 90, "no run goes on", pause=0.5)
    before.wait_until_clean(60, kept=[one["runId"] for one in runs.listed(client)])
    for one in runs.listed(client):
        check(one["status"] in ("ok", "cancelled"), f"{one}")
    equal(client.run("echo again", "bash")["stdout"], "again\n")


@test("the results of kept runs are removed when they expire", timeout=150)
def _():
    site = sites.with_settings(**FEW_KEPT)
    client = sites.new_conversation(site.client())
    run_id = runs.begin(client, "echo kept")
    result = runs.look(client, run_id, waitMs=20000)
    check(0 < result["expiresAt"] - time.time() < 11, f"expiresAt in {result['expiresAt'] - time.time():.0f} s")
    holds_for(lambda: runs.look(client, run_id)["stdout"] == "kept\n", 2, "it is kept")

    def forgotten():
        try:
            runs.look(client, run_id)
            return False
        except ToolError as refused:
            contains(refused.text, "no such run")
            return True
    wait_until(forgotten, 100, "it is forgotten", pause=1)
    equal(runs.listed(client, conversationId=client.conversation), [])
    wait_until(lambda: not [name for name in os.listdir(f"{site.root}/.runs") if name.startswith(run_id)], 60, "its record is gone")


@test("thousands of polls on one run cost little and delay no other call", timeout=120)
def _():
    site, client = sites.shared(), sites.client()
    run_id = runs.begin(client, "sleep 90")

    def lane():
        one = site.client()
        for _ in range(250):
            equal(runs.look(one, run_id, sinceByte=0, waitMs=0)["status"], "running")
        return True
    for problem in warm.together([lane] * 4):
        check(problem is True, f"{problem!r}")
    equal(sites.client().run("echo meanwhile", "bash")["stdout"], "meanwhile\n")
    equal(runs.cancel(client, run_id)["status"], "cancelled")


@test("while the machine has no free memory for a second program, runs follow one another, and each ends well")
def _():
    site = sites.with_settings(SANDBOX_MEMORY_RESERVE="1024g")  # of more than there is
    clients = [sites.new_conversation(site.client()) for _ in range(4)]
    spans = warm.together([lambda one=one: one.run("date +%s.%N; sleep 0.5; date +%s.%N", "bash")["stdout"].split() for one in clients])
    times = sorted((float(start), float(end)) for start, end in spans)
    check(all(before[1] <= after[0] for before, after in zip(times, times[1:])), times)

"""sandcgi stdio while it is busy: calls side by side, cancellation, progress, questions, subscriptions, and its client's end."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import procs
import schema
import sites
from harness import PATIENCE, at_test_end, check, contains, equal, test, wait_until
from mcp import MODERN, timed

META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """Everything that comes back, in order; a thread reads it."""

    def __init__(self, site):
        self.process = subprocess.Popen([site.binary, "stdio", "--config", site.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(f"{site.folder}/log/stdio.log", "ab"), env=sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS)
        self.messages = []
        self.revision, self.methods = MODERN, {}
        self.arrived = threading.Condition()
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()
        at_test_end(self._end)

    def _end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for message in self.messages:
            method = None if "method" in message else self.methods.get(message.get("id"))
            schema.check_message(message, self.revision, method)

    def _read(self):
        for line in self.process.stdout:
            with self.arrived:
                self.messages.append(json.loads(line))
                self.arrived.notify_all()
        with self.arrived:
            self.ended = True
            self.arrived.notify_all()

    def send(self, *messages):
        for message in messages:
            if "id" in message and "method" in message:
                self.methods[message["id"]] = message["method"]
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, fits, seconds=30, what="a message"):
        with self.arrived:
            if not self.arrived.wait_for(lambda: any(fits(m) for m in self.messages), seconds * PATIENCE):
                raise AssertionError(f"{what} did not come within {seconds * PATIENCE} s; got {self.messages}")
            return next(m for m in self.messages if fits(m))

    def answer(self, id_, seconds=30):
        return self.wait(lambda m: m.get("id") == id_ and "method" not in m, seconds, f"the answer to {id_}")

    def has_answer(self, id_):
        return any(m.get("id") == id_ and "method" not in m for m in self.messages)

    def notification(self, method, seconds=10):
        return self.wait(lambda m: m.get("method") == method, seconds, method)

    def handshake(self, version="2025-11-25", capabilities=None):
        self.revision = version
        self.send({"id": "init", "method": "initialize", "params": {"protocolVersion": version, "capabilities": capabilities or {},
                                                                    "clientInfo": {"name": "e2e", "version": "1"}}})
        self.answer("init")
        self.send({"method": "notifications/initialized"})


def _run(code, conversation="stdio", meta=None, **more):
    params = {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | timed(more)}
    if meta:
        params["_meta"] = meta
    return {"method": "tools/call", "params": params}


def _cancel(id_):
    return {"method": "notifications/cancelled", "params": {"requestId": id_, "reason": "test"}}


def _long_run(meta=None):
    """Waits for its end."""
    return _run("sleep 250", meta=meta, timeout=280, waitMs=280000)


def _output(answer):
    return answer["result"]["structuredContent"]["stdout"]


@test("stdio: in the middle of a long call all else is answered, and cancel_run reaches it", timeout=90)
def _():
    site = sites.with_settings()
    client = Client(site)
    client.handshake()
    client.send({"id": 1} | _long_run())
    wait_until(site.containers, 20, "the long call's container")
    client.send({"id": "ping", "method": "ping"}, {"id": "list", "method": "tools/list"}, {"id": 2} | _run("echo meanwhile"),
                {"id": "runs", "method": "tools/call", "params": {"name": "list_runs", "arguments": {"conversationId": "stdio"}}})
    equal(client.answer("ping")["result"], {})
    check(client.answer("list")["result"]["tools"], "no tools")
    equal(_output(client.answer(2)), "meanwhile\n")
    running = [run["runId"] for run in client.answer("runs")["result"]["structuredContent"]["runs"] if run["status"] == "running"]
    check(running, f"the long run is not listed: {client.messages}")
    check(not client.has_answer(1), "the long call has ended")
    for run in running:
        client.send({"id": run, "method": "tools/call", "params": {"name": "cancel_run", "arguments": {"runId": run}}})
    equal(client.answer(1)["result"]["structuredContent"]["status"], "cancelled")


@test("stdio: calls run side by side: each of two waits for the other", core=True, timeout=90)
def _():
    for meta in (None, META):
        client = Client(sites.shared())
        if not meta:
            client.handshake()
        client.send(*({"id": mine} | _run(f"touch {mine}; until [ -e {other} ]; do sleep 0.05; done; echo {mine}",
                                          f"side-by-side-{bool(meta)}", meta) for mine, other in (("a", "b"), ("b", "a"))))
        equal([_output(client.answer(id_)) for id_ in ("a", "b")], ["a\n", "b\n"])


@test("stdio: eight calls at once are all made, and each is answered once", timeout=120)
def _():
    client = Client(sites.shared())
    client.handshake()
    client.send(*({"id": n} | _run(f"echo {n}", f"eight-{n}") for n in range(8)))
    equal([_output(client.answer(n, 60)) for n in range(8)], [f"{n}\n" for n in range(8)])
    client.send({"id": "last", "method": "ping"})
    client.answer("last")
    equal(sorted(m["id"] for m in client.messages if m.get("id") in range(8)), list(range(8)))


@test("stdio: initialize and the first call may come in one write; an id serves one request at a time", timeout=90)
def _():
    client = Client(sites.shared())
    client.revision = "2025-11-25"
    client.send({"id": "init", "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                                  "clientInfo": {"name": "e2e", "version": "1"}}},
                {"method": "notifications/initialized"}, {"id": 1} | _run("sleep 2; echo first"), {"id": 1} | _run("echo second"))
    client.wait(lambda m: "error" in m and m["error"]["code"] == -32600, 20, "the refusal")
    client.wait(lambda m: m.get("id") == 1 and "result" in m, 30, "the first one's answer")
    answers = [m for m in client.messages if "method" not in m]
    equal([m["id"] for m in answers], ["init", 1, 1])
    contains(answers[1]["error"]["message"], "this id")
    equal(_output(answers[2]), "first\n")


def _cancel_under_way(site, client, meta):
    client.send({"id": 1} | _long_run(meta), {"id": 2} | _long_run(meta))
    wait_until(lambda: len(site.containers()) == 2, 20, "two containers")
    client.send(_cancel(2), _cancel(1), _cancel("unknown"), {"id": 3} | _run("echo third", meta=meta))
    equal(_output(client.answer(3)), "third\n")
    wait_until(lambda: not site.containers(), 10, "the programs are gone")
    check(not client.has_answer(1) and not client.has_answer(2), f"a cancelled request was answered: {client.messages}")


@test("stdio: notifications/cancelled ends a call's program at once, in both eras", core=True, timeout=120)
def _():
    site = sites.with_settings()
    client = Client(site)
    client.handshake()
    _cancel_under_way(site, client, None)
    _cancel_under_way(site, Client(site), META)


@test("stdio: progress comes while the call runs, the answer after it")
def _():
    client = Client(sites.shared())
    client.handshake()
    client.send({"id": 5} | _run("sleep 1.5; echo done", meta={"progressToken": "tok"}))
    client.answer(5)
    told = [m["params"] for m in client.messages if m.get("method") == "notifications/progress"]
    check(told and all(p["progressToken"] == "tok" for p in told), f"progress: {told}")
    equal([p["progress"] for p in told], sorted({p["progress"] for p in told}), "progress rises")
    check(client.messages[-1].get("id") == 5, "the answer is last")


@test("stdio: subscriptions of both eras hear of a file that a run writes")
def _():
    site = sites.shared()
    for meta in (None, META):
        client = Client(site)
        uri = "sandbox://news/a.txt"
        if meta:
            client.send({"id": "L", "method": "subscriptions/listen",
                         "params": {"notifications": {"resourceSubscriptions": [uri], "resourcesListChanged": True}, "_meta": META}})
            equal(client.notification("notifications/subscriptions/acknowledged")["params"]["_meta"],
                  {"io.modelcontextprotocol/subscriptionId": "L"})
        else:
            client.handshake()
            client.send({"id": "S", "method": "resources/subscribe", "params": {"uri": uri}})
            equal(client.answer("S").get("result"), {})
        client.send({"id": 1} | _run("date +%N > a.txt; echo > b.txt", "news", meta))
        equal(client.notification("notifications/resources/updated")["params"]["uri"], uri)
        client.answer(1)
        updated = [m for m in client.messages if m.get("method") == "notifications/resources/updated"]
        equal(len(updated), 1, "only what was subscribed to")
        if not meta:
            continue
        client.send(_cancel("L"), {"id": 2} | _run("date > a.txt", "news", meta))
        client.answer(2)
        updated = [m for m in client.messages if m.get("method") == "notifications/resources/updated"]
        equal(len(updated), 1, "after the subscription was cancelled")


@test("stdio: a question to the user is answered while the call waits, and other messages do not wait for it")
def _():
    client = Client(sites.with_settings(SANDBOX_NETWORK="lan", SANDBOX_NETWORK_ASK="true"))
    client.handshake(capabilities={"elicitation": {}})
    client.send({"id": 1} | _run("echo online", network=True))
    question = client.wait(lambda m: m.get("method") == "elicitation/create", 20, "the question")
    client.send({"id": 2, "method": "ping"})
    equal(client.answer(2)["result"], {})
    client.send({"id": question["id"], "result": {"action": "decline"}})
    declined = client.answer(1)
    check(declined["result"]["isError"], f"declined: {declined}")


@test("stdio: nothing is lost when input ends before the answers are out; work without a reader is given up")
def _():
    site = sites.shared()
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": n} | _run(f"sleep 1; echo {n}")) + "\n" for n in (1, 2))
    done = subprocess.run([site.binary, "stdio", "--config", site.config], input=text, capture_output=True, text=True, check=False, timeout=60,
                          env=sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS)
    answers = [json.loads(line)["result"]["structuredContent"]["stdout"] for line in done.stdout.splitlines()]
    equal((done.returncode, sorted(answers)), (0, ["1\n", "2\n"]), done.stderr[-500:])

    ours, theirs = os.pipe()
    process = subprocess.Popen([site.binary, "stdio", "--config", site.config], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL,
                               env=sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS)
    at_test_end(procs.end, process)
    os.close(theirs)
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1} | _run("sleep 50")).encode() + b"\n")
    process.stdin.close()
    time.sleep(1.5)
    equal(process.poll(), None, "it goes on while a reader is left")
    os.close(ours)
    process.wait(60)


# ---- the client's end ----

# A client that starts the server with pipes, asks for a run, and then does nothing until it is killed.
CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.argv[1].encode())
server.stdin.flush()
print(server.pid, flush=True)
server.stdout.read()
"""


def _sockets_of(pids):
    return {name for pid in pids for name in procs.unix_sockets(pid) if name.startswith("/tmp/sandcgi-")}


def _end_in_mid_run(site, end):
    """end gets the client's process and the server's pid. Whatever the server has started ends, and its files go."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": n} | _long_run()) + "\n" for n in (1, 2))
    client = subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-c", CLIENT, lines, site.binary, "stdio"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS | {"SANDCGI_CONFIG": site.config})
    at_test_end(procs.end, client)
    server = int(client.stdout.readline())
    wait_until(lambda: len(site.containers()) == 2, 30, "the containers of two calls")
    pids = [server] + procs.descendants(server)
    sockets = _sockets_of(pids)
    check(sockets, "no sockets of a private broker")
    end(client, server)
    wait_until(lambda: not any(map(procs.exists, pids)), 20, f"all of {pids} have ended")
    wait_until(lambda: not site.containers(), 10, "the containers are gone")
    equal([path for path in sockets if os.path.exists(os.path.dirname(path))], [], "left in /tmp")
    client.stdout.close()


@test("stdio: a killed client, and a server that is asked or forced to end, leave no process, container or file behind", timeout=200)
def _():
    site = sites.own({"SANDBOX_WARM": ""}, start=False)
    _end_in_mid_run(site, lambda client, server: client.kill())
    _end_in_mid_run(site, lambda client, server: os.kill(server, signal.SIGTERM))
    _end_in_mid_run(site, lambda client, server: os.kill(server, signal.SIGKILL))

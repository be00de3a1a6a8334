"""sandcgi stdio while it is busy: cancellation, progress, questions, subscriptions."""
import json
import os
import subprocess
import threading
import time

import procs
import schema
import sites
from harness import PATIENCE, at_test_end, check, equal, in_time, test
from mcp import MODERN

META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """Everything that comes back, in order; a thread reads it."""

    def __init__(self, site):
        self.process = subprocess.Popen([site.binary, "stdio", "--config", site.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(f"{site.folder}/log/stdio.log", "ab"), env=sites.clean_environment() | sites.SANITIZER_ENV)
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

    def notification(self, method, seconds=10):
        return self.wait(lambda m: m.get("method") == method, seconds, method)

    def handshake(self, version="2025-11-25", capabilities=None):
        self.revision = version
        self.send({"id": "init", "method": "initialize", "params": {"protocolVersion": version, "capabilities": capabilities or {},
                                                                    "clientInfo": {"name": "e2e", "version": "1"}}})
        self.answer("init")
        self.send({"method": "notifications/initialized"})


def _run(code, conversation="stdio", meta=None, **more):
    params = {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | more}
    if meta:
        params["_meta"] = meta
    return {"method": "tools/call", "params": params}


def _cancel(id_):
    return {"method": "notifications/cancelled", "params": {"requestId": id_, "reason": "test"}}


def _cancel_under_way(client, meta):
    client.send({"id": 1} | _run("sleep 30", meta=meta), {"id": 2} | _run("echo never > never", meta=meta),
                {"id": 3} | _run("echo third; ls", meta=meta))
    time.sleep(1.5)
    began = time.monotonic()
    client.send(_cancel(2), _cancel(1), _cancel("unknown"))
    third = client.answer(3)
    in_time(began, 8, "the run does not go on")
    output = third["result"]["structuredContent"]["stdout"]
    equal(output, "third\n", "a cancelled call that waited is not made")
    check(not any(m.get("id") in (1, 2) for m in client.messages), f"a cancelled request was answered: {client.messages}")


@test("stdio: notifications/cancelled ends the call under way, and takes back one that waits, in both eras")
def _():
    client = Client(sites.own())
    client.handshake()
    _cancel_under_way(client, None)
    client.send({"id": "p", "method": "ping"})
    equal(client.answer("p")["result"], {})
    modern = Client(sites.own())
    _cancel_under_way(modern, META)


@test("stdio: progress comes while the call runs, the answer after it")
def _():
    client = Client(sites.own())
    client.handshake()
    client.send({"id": 5} | _run("sleep 3; echo done", meta={"progressToken": "tok"}))
    client.answer(5)
    told = [m["params"] for m in client.messages if m.get("method") == "notifications/progress"]
    check(told and all(p["progressToken"] == "tok" for p in told), f"progress: {told}")
    equal([p["progress"] for p in told], sorted({p["progress"] for p in told}), "progress rises")
    check(client.messages[-1].get("id") == 5, "the answer is last")


@test("stdio: subscriptions of both eras hear of a file that a run writes")
def _():
    site = sites.own()
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


@test("stdio: a question to the user is answered while the call waits, and other messages keep their turn")
def _():
    client = Client(sites.own({"SANDBOX_NETWORK": "lan", "SANDBOX_NETWORK_ASK": "true"}))
    client.handshake(capabilities={"elicitation": {}})
    client.send({"id": 1} | _run("echo online", network=True))
    question = client.wait(lambda m: m.get("method") == "elicitation/create", 20, "the question")
    client.send({"id": 2, "method": "ping"}, {"id": question["id"], "result": {"action": "decline"}})
    declined = client.answer(1)
    equal(client.answer(2)["result"], {})
    check(declined["result"]["isError"], f"declined: {declined}")


@test("stdio: nothing is lost when input ends before the answers are out; work without a reader is given up")
def _():
    site = sites.own()
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": n} | _run(f"sleep 1; echo {n}")) + "\n" for n in (1, 2))
    done = subprocess.run([site.binary, "stdio", "--config", site.config], input=text, capture_output=True, text=True, check=False, timeout=60,
                          env=sites.clean_environment() | sites.SANITIZER_ENV)
    answers = [json.loads(line)["result"]["structuredContent"]["stdout"] for line in done.stdout.splitlines()]
    equal((done.returncode, answers), (0, ["1\n", "2\n"]), done.stderr[-500:])

    ours, theirs = os.pipe()
    process = subprocess.Popen([site.binary, "stdio", "--config", site.config], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL,
                               env=sites.clean_environment() | sites.SANITIZER_ENV)
    at_test_end(procs.end, process)
    os.close(theirs)
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1} | _run("sleep 50")).encode() + b"\n")
    process.stdin.close()
    time.sleep(1.5)
    equal(process.poll(), None, "it goes on while a reader is left")
    os.close(ours)
    process.wait(60)

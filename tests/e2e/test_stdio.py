"""sandcgi stdio, as desktop clients start it: both eras, told apart by what comes first."""
import time

import sites
from harness import check, contains, equal, test, wait_until
from mcp import LEGACY, MODERN
from stdio import Stdio
from streams import modern_message


def _run(code, conversation, **arguments):
    return {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | arguments}


def _start(revision=None, site=None):
    return Stdio((site or sites.shared()).config, revision)


def _conversation():
    return sites.client().conversation


@test("stdio speaks every legacy revision after initialize, and 2026-07-28 without")
def _():
    conversation = _conversation()
    for revision in LEGACY:
        one = _start()
        equal(one.initialize(revision)["protocolVersion"], revision)
        check(one.result("tools/list")["tools"], "no tools")
        equal(one.result("tools/call", _run("echo hi", conversation)).get("isError", False), False)
        equal(one.result("ping"), {})
    one = _start(MODERN)
    equal(one.result("server/discover")["supportedVersions"], [MODERN])
    check(one.result("tools/list")["tools"], "no tools")
    equal(one.result("tools/call", _run("echo hi", conversation))["structuredContent"]["stdout"], "hi\n")


@test("stdio answers server/discover without committing itself; after a modern request initialize is -32022")
def _():
    one = _start()
    one.send(modern_message("server/discover", id_="server-discover-probe-1"))
    equal(one.answer("server-discover-probe-1")["result"]["supportedVersions"], [MODERN])
    equal(one.initialize("2025-06-18")["protocolVersion"], "2025-06-18")
    other = _start(MODERN)
    other.result("tools/list")
    other.send({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}})
    equal(other.answer(9)["error"]["code"], -32022)


@test("stdio: notifications/cancelled ends a run, which is then not answered, in both eras")
def _():
    site = sites.shared()
    conversation = _conversation()
    for revision in ("2025-11-25", MODERN):
        one = _start(revision)
        if revision != MODERN:
            one.initialize(revision)
        id_ = one.call("tools/call", _run("sleep 60", conversation))
        wait_until(site.run_children, 10, "the run has begun")
        one.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
                 if revision != MODERN else
                 {"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": id_} | {"_meta": modern_message("x")["params"]["_meta"]}})
        start = time.monotonic()
        check(one.result("tools/list")["tools"], "no tools")
        check(time.monotonic() - start < 5, f"{revision}: the next answer came late")
        wait_until(lambda: not site.run_children(), 5, "the run has ended")
        one.is_silent(0.5)


@test("stdio: requests sent while a run goes on are answered, none is lost")
def _():
    one = _start()
    one.initialize()
    conversation = _conversation()
    ids = {one.call("tools/call", _run("sleep 1; echo slow", conversation))}
    ids |= {one.call("ping") for _ in range(20)}
    seen = set()
    while seen != ids:
        message = one.next()
        check(message is not None, "the program ended")
        if "method" not in message:
            seen.add(message["id"])


@test("stdio: progress, and a question to the user whose answer comes while the run waits")
def _():
    site = sites.with_settings(SANDBOX_NETWORK="ask")
    one = _start(site=site)
    one.initialize(capabilities={"elicitation": {}})
    conversation = _conversation()
    id_ = one.call("tools/call", _run("sleep 1.5", conversation) | {"_meta": {"progressToken": "t"}})
    steps = []
    while "method" in (message := one.next()):
        equal(message["method"], "notifications/progress")
        steps.append(message["params"]["progress"])
    equal(message["id"], id_)
    check(steps and steps == sorted(set(steps)), f"progress: {steps}")
    id_ = one.call("tools/call", _run("echo went", conversation, network=True))
    asked = one.next()
    equal(asked["method"], "elicitation/create")
    content = {name: {"boolean": True, "string": (p.get("enum") or ["yes"])[0]}[p["type"]]
               for name, p in asked["params"]["requestedSchema"]["properties"].items()}
    one.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}})
    equal(one.answer(id_)["result"]["structuredContent"]["stdout"].strip(), "went")


@test("stdio: a subscribed file is told to legacy clients, a listened one to modern ones")
def _():
    conversation = _conversation()
    uri = f"sandbox://{conversation}/told.txt"
    legacy = _start()
    legacy.initialize()
    equal(legacy.result("resources/subscribe", {"uri": uri}), {})
    id_ = legacy.call("tools/call", _run("echo x > told.txt", conversation))
    seen = []
    while len(seen) < 2:
        message = legacy.next(10)
        if message.get("id") == id_ or message.get("method") == "notifications/resources/updated":
            seen.append(message)
    equal([one["params"]["uri"] for one in seen if "method" in one], [uri])
    modern = _start(MODERN)
    modern.call("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}}, "L")
    equal(modern.next()["method"], "notifications/subscriptions/acknowledged")
    modern.call("tools/call", _run("echo y > told.txt", conversation))
    methods = {modern.next(10).get("method") for _ in range(2)}
    contains(methods, "notifications/resources/updated")


@test("stdio: lines that are no message are answered as errors and the next one is served; EOF ends it")
def _():
    one = _start()
    one.initialize()
    for line, code in ((b"{", -32700), (b"[]", -32600), (b'"x"', -32600), (b'{"jsonrpc":"2.0"}', -32600), (b"\xff", -32700)):
        one.send(line)
        equal(one.next()["error"]["code"], code, repr(line))
    one.send(b"")
    equal(one.result("ping"), {})
    one.process.stdin.close()
    equal(one.next(10), None)
    equal(one.process.wait(10), 0)

"""sandcgi stdio, as desktop clients start it: both eras, told apart by what comes first."""
import sites
from harness import check, equal, test
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
    equal(one.process.wait(60), 0)

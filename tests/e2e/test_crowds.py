"""Crowds: calls that wait keep no worker from others, and no tenant takes what others need."""
import json
import os
import secrets
import socket
import urllib.parse

import fcgi
import package_index
import procs
import runs
import sites
from harness import at_test_end, check, contains, equal, test, wait_until
from mcp import API, META_CAPABILITIES, META_VERSION, MODERN, Response, ToolError, end_run

SMALL = {"SANDBOX_MAX_RUNS": "5", "SANDBOX_QUEUE": "5", "SANDBOX_BACKGROUND_MAX": "20", "SANDBOX_TIMEOUT_MAX": "600s", "SANDBOX_PERSISTENT_MAX": "20",
         "SANDBOX_PERSISTENT_SERVER": "5", "SANDCGI_MAX_SESSIONS": "5", "SANDCGI_MAX_STREAMS": "10", "SANDCGI_WORKERS": "4", "SANDBOX_URL_TTL": "1h"}
_tokens = {}


def _other(site, tenant):
    """A client of another tenant."""
    if (site, tenant) not in _tokens:
        _tokens[site, tenant] = secrets.token_hex(24)
        site.set_token(tenant, _tokens[site, tenant])
    client = sites.new_conversation(site.client(timeout=90).with_token(_tokens[site, tenant]))
    wait_until(lambda: client.request("ping").status == 200, 10, "nginx knows the tenant")
    return client


def _answer(call):
    """The result of a call that was begun."""
    answer = call.getresponse()
    equal(answer.status, 200)
    return Response(answer.status, answer.headers, answer.read()).json()["result"]["structuredContent"]


def _long_run(client):
    """The id of a run that lasts until it is cancelled."""
    return client.run("sleep 600", "bash", background=True, timeout=600)["runId"]


def _wait_for(client, run, n):
    """n calls of get_run that wait; their connections."""
    calls = [client.begin_call("get_run", {"runId": run, "waitMs": 300000}) for _ in range(n)]
    for one in calls:
        at_test_end(one.close)
    return calls


def _small():
    """A server with room for few, and two tenants of it: one that takes all it can get, and another."""
    site = sites.with_settings(nginx={"UPLOAD_CONNS": 5}, **SMALL)
    return site, sites.new_conversation(site.client(timeout=90)), _other(site, "dave")


@test("forty waiting calls leave four workers free: health, link checks and short calls are answered", timeout=120, core=True)
def _():
    site, client, _ = _small()
    url = client.run("open('x', 'w').write('here')")["files"][0]["url"]
    held = [_long_run(client) for _ in range(2)]
    calls = [call for run in held for call in _wait_for(client, run, 20)]
    wait_until(lambda: len(site.busy_workers()) >= 40, 20, "every call has a worker")
    for _ in range(5):
        equal(site.client(timeout=30).http("GET", "/healthz").status, 200, "/healthz")
        equal(client.download(url).body, b"here", "a signed link")
        check(client.result("tools/list")["tools"], "tools/list")
        equal([one["name"] for one in client.structured("list_files", {"conversationId": client.conversation})["files"]], ["x"])
    equal(client.run("print(1)")["stdout"], "1\n")
    for run in held:
        client.structured("cancel_run", {"runId": run})
    for call in calls:
        equal(_answer(call)["status"], "cancelled")
    wait_until(lambda: len(site.workers()) <= 8, 30, "workers that are too many end", 0.5)


@test("a reload waits for calls that wait", timeout=120)
def _():
    site = sites.own({"SANDCGI_WORKERS": "2", "SANDBOX_TIMEOUT_MAX": "600s"})
    client = sites.new_conversation(site.client(timeout=30))
    calls = _wait_for(client, client.run(runs.UNTIL_GO + "echo end", "bash", background=True)["runId"], 8)
    wait_until(lambda: len(site.busy_workers()) >= 8, 20, "every call has a worker")
    before = set(site.workers())
    site.reload()
    wait_until(lambda: len(set(site.workers()) - before) >= 2, 20, "workers of the new generation")
    equal(client.result("ping"), {})
    check(before & set(site.workers()), "the old generation has left its calls")
    runs.go(client)
    for call in calls:
        equal(_answer(call)["stdout"], "end\n")
    wait_until(lambda: not before & set(site.workers()), 20, "the old generation has ended")


@test("a tenant gets no more calls than four times what is left: the others have theirs", timeout=90, core=True)
def _():
    site = sites.with_settings(SANDCGI_WORKERS="2", SANDCGI_MAX_CALLS="5", SANDBOX_TIMEOUT_MAX="600s")
    alice, dave = sites.new_conversation(site.client(timeout=30)), _other(site, "dave")
    run, other_run = _long_run(alice), _long_run(dave)
    calls = _wait_for(alice, run, 4)
    wait_until(lambda: len(site.busy_workers()) >= 4, 20, "every call has a worker")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    refused = alice.post(message, patient=False)
    equal(refused.status, 429)
    equal(refused.headers["Retry-After"], "1")
    contains(refused.json()["error"]["message"], "SANDCGI_MAX_CALLS")
    check(dave.result("tools/list")["tools"], "another tenant has room")
    _can_free(site, alice)
    wait_until(lambda: len(site.busy_workers()) <= 4, 20, "only the calls that wait")
    last = _wait_for(dave, other_run, 1)[0]
    wait_until(lambda: len(site.busy_workers()) >= 5, 20, "and waits, too")
    equal(dave.post(message, patient=False).status, 429, "now all calls are taken")
    equal(site.client(timeout=30).http("GET", "/healthz").status, 200, "/healthz")
    for call in (*calls, last):
        call.close()
    for client, own in ((alice, run), (dave, other_run)):
        wait_until(lambda client=client: client.post(message, patient=False).status == 200, 20, "room again")
        client.structured("cancel_run", {"runId": own})


def _session(client):
    """A new session of an older revision: its headers."""
    answer = client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
    equal(answer.status, 200)
    return {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-06-18"}


def _can_free(site, client):
    """What ends something is served though the tenant has its share of calls, which wait."""
    def settle():
        # An answer is here a moment before its worker has ended the call.
        wait_until(lambda: len(site.busy_workers()) <= 4, 20, "only the calls that wait")

    def post(method, **params):
        settle()
        return client.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, patient=False)
    unknown = secrets.token_hex(16)
    for tool, arguments in (("cancel_run", {"runId": unknown}), ("close_sandbox", {"sandboxId": "psandbox_" + unknown})):
        answer = post("tools/call", name=tool, arguments=arguments)
        equal((answer.status, answer.json().get("result", {}).get("isError")), (200, True), tool)
    equal(post("tools/call", name="list_runs", arguments={"conversationId": "c"}).status, 429, "a tool that ends nothing")
    equal(post("tools/call", name="cancel_run", arguments={"runId": "x" * 5000}).status, 429, "a long message")
    settle()
    cancelled = client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, patient=False)
    equal(cancelled.status, 202, "notifications/cancelled")
    settle()
    gone = client.http("DELETE", API, headers=client.headers({"Mcp-Session-Id": "0" * 64}))
    equal(gone.status, 404, "DELETE of a session that is not there")


@test("a tenant that has all of its calls can still end its session and cancel a call and a run", timeout=90)
def _():
    site = sites.own({"SANDBOX_TIMEOUT_MAX": "600s"}, nginx={"CONNS": 2})
    client = sites.new_conversation(site.client(timeout=30))
    session, run = _session(client), _long_run(client)
    waiting = client.connect()
    at_test_end(waiting.close)
    call = {"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": {"name": "get_run", "arguments": {"runId": run, "waitMs": 300000}}}
    waiting.request("POST", API, json.dumps(call), client.headers(session))
    other = _wait_for(client, run, 1)[0]
    wait_until(lambda: len(site.busy_workers()) >= 2, 20, "both calls wait")
    equal(client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, patient=False).status, 429)
    _can_free(site, client)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 17}}
    equal(client.post(cancel, session, patient=False).status, 202)
    answer = waiting.getresponse()
    # 200: the call was silent for so long that its answer had become a stream.
    check(answer.status == 202 or (answer.status == 200 and b"data:" not in answer.read()), f"the call that was cancelled: {answer.status}")
    _wait_for(client, run, 1)
    wait_until(lambda: len(site.busy_workers()) >= 2, 20, "two calls wait again")
    equal(client.http("DELETE", API, headers=client.headers(session)).status, 204)
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "cancel_run", "arguments": {"runId": run}}}, patient=False)
    equal(answer.json()["result"]["structuredContent"]["status"], "cancelled")
    equal(_answer(other)["status"], "cancelled")


@test("above the rate a tenant can still cancel a call and a run; other calls are refused", timeout=60)
def _():
    site = sites.own({"SANDBOX_TIMEOUT_MAX": "600s"}, nginx={"RATE": 1, "BURST": 20})
    client = sites.new_conversation(site.client(timeout=30))
    run = _long_run(client)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answers = (client.post(ping, patient=False) for _ in range(10000))
    refused = wait_until(lambda: next((a for a in answers if a.status != 200), None), 30, "the tenant is above the rate")
    equal(refused.status, 429)
    contains(refused.json()["error"]["message"], "RATE")
    cancelled = client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, patient=False)
    equal(cancelled.status, 202, "notifications/cancelled")
    answer = client.post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "cancel_run", "arguments": {"runId": run}}}, patient=False)
    equal((answer.status, answer.json().get("result", {}).get("structuredContent", {}).get("status")), (200, "cancelled"))


@test("a tenant that takes all places and the queue leaves a place to another, whose run is not queued", timeout=120, core=True)
def _():
    _, alice, dave = _small()
    for n in range(4):
        run = alice.run("sleep 600", "bash", conversation=f"c{n}", background=True, timeout=600)["runId"]
        at_test_end(runs.cancel, alice, run)
    for n in range(8):  # four of them have room in the queue
        alice.conversation = f"q{n}"
        at_test_end(alice.begin_cancellable("sleep 600", "bash", timeout=600).close)
    equal(dave.run("echo mine", "bash", timeout=20).get("stdout"), "mine\n", "another tenant's run")


@test("of two places a tenant has both until another tenant asks; then one is kept for the other", timeout=120)
def _():
    site = sites.own({"SANDBOX_MAX_RUNS": "2", "SANDBOX_TIMEOUT_MAX": "600s"})  # that no other tenant has asked yet
    alice, dave = sites.new_conversation(site.client(timeout=90)), _other(site, "dave")

    held = [alice.run("sleep 600", "bash", conversation=f"c{n}", background=True, timeout=600)["runId"] for n in range(2)]
    waiting = dave.begin_run("echo mine", "bash")
    wait_until(lambda: site.busy_workers(), 20, "the other tenant waits in the queue")
    runs.cancel(alice, held[0])
    equal(end_run(waiting, 30)[0].get("stdout"), "mine\n", "the first place that is free")
    wait_until(lambda: not site.busy_workers(), 20, "no call waits")
    third = alice.begin_cancellable("sleep 600", "bash", timeout=600)
    wait_until(lambda: site.busy_workers(), 20, "the tenant's next run waits, too")
    equal(dave.run("echo mine", "bash", timeout=20).get("stdout"), "mine\n", "another tenant's run")
    third.close()
    runs.cancel(alice, held[1])


@test("a tenant whose installations take all places that it can get leaves one to another", timeout=180)
def _():
    index = package_index.Index()
    site = sites.own({"SANDBOX_MAX_RUNS": "5", "SANDBOX_INDEXES": f"python={index.url}", "SANDBOX_CA": sites.certificate()[0],
                      "SANDBOX_INDEX_PRIVATE": "true"})
    alice, dave = sites.new_conversation(site.client(timeout=90)), _other(site, "dave")
    for n in range(8):
        arguments = {"conversationId": f"c{n}", "language": "python", "packages": ["slow"]}
        at_test_end(alice.begin_call("install_package", arguments).close)
    wait_until(lambda: index.asked.count("/simple/slow/") == 4, 90, "four of them ask the index", 0.5)
    equal(dave.run("echo mine", "bash", timeout=20).get("stdout"), "mine\n", "another tenant's run")
    equal(index.asked.count("/simple/slow/"), 4, "the others wait")


@test("a tenant that takes all persistent sandboxes and sessions leaves one to another; so do its waiting exec calls", timeout=120)
def _():
    _, alice, dave = _small()
    opened = []
    try:
        while len(opened) < 10:
            arguments = {"conversationId": f"s{len(opened)}", "language": "bash"}
            opened.append(alice.structured("create_sandbox", arguments)["sandboxId"])
            at_test_end(_close, alice, opened[-1])
    except ToolError as refused:
        contains(refused.text, "SANDBOX_PERSISTENT_SERVER")
    equal(len(opened), 4, "of five")
    contains(alice.run_error("x = 1", session=True), "SANDBOX_PERSISTENT_SERVER")
    for sandbox in opened:
        at_test_end(alice.begin_call("exec", {"sandboxId": sandbox, "commands": ["sleep 60"]}).close)
    equal(dave.run("x = 6; print(x * 7)", session=True)["stdout"], "42\n", "another tenant's session")
    dave.structured("reset_session", {"conversationId": dave.conversation, "language": "python"})
    theirs = dave.structured("create_sandbox", {"conversationId": dave.conversation, "language": "bash"})["sandboxId"]
    at_test_end(_close, dave, theirs)
    result = dave.structured("exec", {"sandboxId": theirs, "commands": ["echo mine"]})["results"][0]
    equal(result["stdout"], "mine\n", "another tenant's exec")


def _close(client, sandbox):
    client.structured("close_sandbox", {"sandboxId": sandbox})


def _upload(site, client, body, size):
    """A new upload by link: its connection, after so much of the body."""
    link = client.structured("create_upload", {"conversationId": client.conversation, "filename": secrets.token_hex(4)})["url"]
    url = urllib.parse.urlsplit(link)
    sock = socket.create_connection(("localhost", site.http_port), 30)
    at_test_end(sock.close)
    sock.sendall(f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode() + body)
    return sock


@test("a tenant whose uploads are on their way leaves one to another, from the same address", timeout=60)
def _():
    site, alice, dave = _small()
    begun = [_upload(site, alice, b"x" * (1 << 20), 2 << 20) for _ in range(4)]
    wait_until(lambda: len({path for pid in site.processes() for path in procs.open_files(pid) if "/.staging/" in path}) == 4, 20, "four of five have begun")
    with _upload(site, alice, b"x", 1) as refused:
        equal(refused.recv(100).split()[1], b"429", "the fifth")
    with _upload(site, dave, b"x", 1) as other:
        equal(other.recv(100).split()[1], b"201", "another tenant's")
    for sock in begun:
        sock.sendall(b"x" * (1 << 20))
        equal(sock.recv(100).split()[1], b"201", "those that were on their way")


@test("a tenant that reads its archives slowly leaves some to another, from the same address", timeout=90)
def _():
    site, alice, dave = _small()
    for client, size in ((alice, 24 << 20), (dave, 1)):
        client.run(f"head -c {size} /dev/zero >big", "bash")
    links = [client.structured("download_archive", {"conversationId": client.conversation, "format": "tar"})["url"] for client in (alice, dave)]
    url = urllib.parse.urlsplit(links[0])
    taken = []
    for _ in range(20):
        sock = socket.socket()
        at_test_end(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(60)
        sock.connect(("127.0.0.1", site.http_port))
        sock.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        taken.append(sock)
    equal([sock.recv(12) for sock in taken], [b"HTTP/1.1 200"] * 20, "twenty of twenty-four")
    equal(alice.download(links[0]).status, 503, "the next one")
    answer = dave.download(links[1])
    check(answer.status == 200 and len(answer.body) >= 1024, f"another tenant's archive: {answer.status}")


@test("a tenant that makes sessions without end ends its own, not another's", timeout=60)
def _():
    site, alice, dave = _small()
    theirs = _session(dave)
    ours = [_session(alice) for _ in range(8)]
    equal(dave.request("ping", headers=theirs).status, 200, "another tenant's session")
    equal([alice.request("ping", headers=one).status for one in ours], [404] * 4 + [200] * 4)
    equal(len([name for name in os.listdir(f"{site.root}/.sessions") if len(name) == 64]), 5)
    equal(dave.http("DELETE", API, headers=dave.headers(theirs)).status, 204)


@test("S8: a tenant gets no more streams than four times what is left", timeout=60)
def _():
    site, _, _ = _small()

    def listen(tenant):
        """The status of a stream that stays open."""
        stream = fcgi.connect(site.hub)
        at_test_end(stream.close)
        fcgi.send_request(stream, {"HTTP_MCP_PROTOCOL_VERSION": MODERN, "HTTP_MCP_METHOD": "subscriptions/listen", "HTTP_HOST": "localhost",
                                   "SANDCGI_TENANT": tenant, "SANDCGI_SECRET": site.secret}, body)
        return fcgi.parse_cgi(fcgi.read_until(stream, b"\r\n\r\n"))[0]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
                       "params": {"notifications": {"toolsListChanged": True},
                                  "_meta": {META_VERSION: MODERN, META_CAPABILITIES: {}}}}).encode()
    equal([listen("alice") for _ in range(10)], [200] * 8 + [429] * 2)
    equal(listen("dave"), 200, "another tenant has room")

"""Open streams: the hub behind nginx, permission to open them, their messages, and their end."""
import contextlib
import json
import os
import resource
import select
import signal
import socket
import time

import fcgi
import procs
import schema
import sites
from harness import at_test_end, check, contains, equal, in_time, test, wait_until
from mcp import API, MODERN

LATEST = "2025-11-25"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def _publish(site, **event):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(json.dumps(event).encode(), f"{site.folder}/run/events.sock")


class Stream:
    """An answer that stays open."""

    def __init__(self, client, method, body=None, headers=None):
        self.revision = MODERN if body else LATEST
        self.connection = client.connect()
        at_test_end(self.connection.close)
        data = json.dumps(body).encode() if body is not None else None
        self.connection.request(method, API, data, client.headers(headers))
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def line(self):
        return self.answer.readline().decode()

    def message(self, tools=False):
        """The next message; None at the end. tools: also that the list of tools has changed, of which each server tells when it
        has found its runners."""
        while line := self.line():
            if line.startswith("data: {"):
                message = json.loads(line[6:])
                schema.check_message(message, self.revision, "subscriptions/listen")
                if tools or message.get("method") != "notifications/tools/list_changed":
                    return message
        return None

    def close(self):
        self.answer.close()
        self.connection.close()


def _get(client, session=None, **headers):
    extra = {"Accept": "text/event-stream", "Content-Type": None} | headers
    if session:
        extra["Mcp-Session-Id"] = session
    return Stream(client, "GET", headers=extra)


def _listen(client, id_="L1", notifications=None, **headers):
    body = {"jsonrpc": "2.0", "id": id_, "method": "subscriptions/listen",
            "params": {"notifications": notifications or {"toolsListChanged": True}, "_meta": META}}
    return Stream(client, "POST", body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"} | headers)


def _session(client, version=LATEST):
    answer = client.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}})
    session = answer.headers.get("Mcp-Session-Id")
    check(session, f"initialize gave no session: {answer.status} {answer.body!r}")
    return session


@test("a session's GET stream hears of changes, there is one at a time, and it ends with the session", core=True)
def _():
    site = sites.shared()
    client = site.plain_client()
    session = _session(client)
    stream = _get(client, session)
    equal((stream.status, stream.answer.headers["Content-Type"]), (200, "text/event-stream"))
    equal(_get(client, session).status, 409, "a second stream")
    _publish(site, kind="tools")
    equal(stream.message(tools=True)["method"], "notifications/tools/list_changed")
    _publish(site, kind="resource", tenant="default", uri="sandbox://c/not-subscribed")
    _publish(site, kind="resources", tenant="another tenant")
    _publish(site, kind="resources", tenant="default")
    equal(stream.message()["method"], "notifications/resources/list_changed", "only what concerns it")
    subscribed = client.request("resources/subscribe", {"uri": "sandbox://c/a.txt"}, headers={"Mcp-Session-Id": session})
    equal(subscribed.json().get("result"), {}, "subscribe")
    _publish(site, kind="resource", tenant="default", uri="sandbox://c/a.txt")
    equal(stream.message(), {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "sandbox://c/a.txt"}})
    answer = client.http("DELETE", API, headers=client.headers({"Mcp-Session-Id": session}))
    check(answer.status in (200, 204), f"DELETE: {answer.status}")
    equal(stream.message(), None, "after DELETE")
    equal(_get(client, session).status, 404, "GET afterwards")
    equal(client.request("ping", headers={"Mcp-Session-Id": session}).status, 404, "POST afterwards")
    stream = _get(client, "0" * 64)
    equal(stream.status, 404, "a session that never was")
    check(400 <= _get(client).status < 500, "GET without a session")


@test("subscriptions/listen acknowledges, tags what it sends, and is closed by its client", core=True)
def _():
    site = sites.shared()
    client = site.client()
    stream = _listen(client, 7, {"toolsListChanged": True, "resourceSubscriptions": ["sandbox://c/a.txt"]})
    equal(stream.status, 200)
    equal(stream.answer.headers["Content-Type"], "text/event-stream")
    first = stream.message()
    equal(first["method"], "notifications/subscriptions/acknowledged")
    equal(first["params"]["_meta"][SUBSCRIPTION], 7)
    _publish(site, kind="resources", tenant="default")
    _publish(site, kind="resource", tenant="another tenant", uri="sandbox://c/a.txt")
    _publish(site, kind="resource", tenant="default", uri="sandbox://c/a.txt")
    second = stream.message()
    equal((second["method"], second["params"]["uri"]), ("notifications/resources/updated", "sandbox://c/a.txt"))
    equal(second["params"]["_meta"], {SUBSCRIPTION: 7})
    hub = site.hub_process()
    before = len(procs.open_files(hub))
    stream.close()
    wait_until(lambda: len(procs.open_files(hub)) < before, 5, "the hub lets go of a stream that its client left")


@test("a body that is no listen does not get into the hub, whatever Mcp-Method says")
def _():
    client = sites.shared().client()
    headers = {"Mcp-Method": "subscriptions/listen"}
    call = {"jsonrpc": "2.0", "id": "x", "method": "tools/list"}
    for body in (call, call | {"params": {"_meta": META}}):
        answer = client.post(body, headers)
        equal((answer.status, answer.error_code(), answer.json()["id"]), (400, -32020, "x"))
    equal(client.post([call], headers).status, 400, "a batch")
    equal(client.post(b"{", headers).error_code(), -32700)
    equal(client.post(call, headers | {"Content-Type": "text/plain"}).status, 415)


@test("streams over SANDCGI_MAX_STREAMS are refused with 429 and a JSON-RPC error that names the request")
def _():
    client = sites.with_settings(SANDCGI_MAX_STREAMS="3").client()
    streams = [_listen(client, n) for n in range(3)]
    equal([stream.status for stream in streams], [200] * 3)
    refused = _listen(client, "over")
    body = json.loads(refused.answer.read())
    equal((refused.status, body["id"]), (429, "over"))
    contains(body["error"]["message"], "SANDCGI_MAX_STREAMS")
    equal(client.result("ping"), {}, "calls go on")
    streams[0].close()
    wait_until(lambda: _listen(client, "again").status == 200, 5, "room again")


@test("an open stream shows every 15 seconds that it is there")
def _():
    client = sites.shared().client()
    began = time.monotonic()
    stream = _listen(client, notifications={"resourcesListChanged": True})
    stream.message()
    stream.line()
    equal(stream.line(), ": \n")
    check(time.monotonic() - began > 10, "a comment before its time")
    in_time(began, 17, "a comment")


@test("when the server stops, every listen gets its response and every stream ends", core=True)
def _():
    site = sites.own()
    client = site.client()
    listen, get = _listen(client, "L"), _get(client, _session(client))
    equal((listen.status, get.status), (200, 200))
    listen.message()
    os.kill(site.hub_process(), signal.SIGTERM)
    last = listen.message()
    equal((last["id"], last["result"]["resultType"]), ("L", "complete"))
    equal((listen.message(), get.message()), (None, None))
    wait_until(lambda: site.hub_process(), 10, "another hub")
    wait_until(lambda: _listen(client).status == 200, 10, "streams again")


MANY = {"SANDCGI_MAX_STREAMS": "700", "SANDCGI_WORKERS": "1"}


@test("streams do not use up workers")
def _():
    client = sites.with_settings(**MANY).client()
    streams = [_listen(client, n) for n in range(20)]
    equal([stream.status for stream in streams], [200] * 20)
    equal(client.result("ping"), {})


@test("one event reaches hundreds of streams at once", timeout=120)
def _():
    site = sites.with_settings(**MANY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
                       "params": {"notifications": {"toolsListChanged": True}, "_meta": META}}).encode()
    params = {"HTTP_MCP_PROTOCOL_VERSION": MODERN, "HTTP_MCP_METHOD": "subscriptions/listen", "HTTP_HOST": "localhost",
              "SANDCGI_TENANT": "default", "SANDCGI_SECRET": site.secret}
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(fcgi.connect(f"{site.folder}/run/hub.sock")) for _ in range(500)]
        for stream in streams:
            fcgi.send_request(stream, params, body)
        for stream in streams:
            fcgi.read_until(stream, b"acknowledged")
        poll = select.epoll()
        for stream in streams:
            poll.register(stream, select.EPOLLIN)
        began = time.monotonic()
        _publish(site, kind="tools")
        waiting = {stream.fileno(): stream for stream in streams}
        while waiting and time.monotonic() < began + 10:
            for fd, _ in poll.poll(1):
                contains(waiting.pop(fd).recv(4096).decode("latin-1"), "notifications/tools/list_changed")
                poll.unregister(fd)
        equal(len(waiting), 0, "streams that heard nothing")
        in_time(began, 2, "all are told")


@test("only allowed hosts and pages may call, and pages can read what they are told")
def _():
    site = sites.with_settings(SANDCGI_ALLOWED_ORIGINS="https://page.test", nginx={"ORIGINS": "https://page.test"})
    client = site.client()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = client.post(ping, {"Origin": "https://page.test"})
    equal((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, "https://page.test"))
    contains(answer.headers["Access-Control-Expose-Headers"], "Mcp-Session-Id")
    equal(client.post(ping, {"Origin": "https://evil.test"}).status, 403)
    equal(client.post(ping, {"Host": "evil.test"}).status, 403)
    equal(client.post(ping, {"Host": f"localhost:{site.https_port}", "Origin": f"http://localhost:{site.https_port}"}).status, 200)
    stream = _listen(client, Origin="https://page.test")
    equal(stream.answer.headers["Access-Control-Allow-Origin"], "https://page.test")
    params = {"SANDCGI_TENANT": "default", "SANDCGI_SECRET": site.secret}
    for path in (site.front, f"{site.folder}/run/hub.sock"):
        for extra, status in (({"HTTP_HOST": "evil.test"}, 403), ({"HTTP_ORIGIN": "null"}, 403), ({"SANDCGI_SECRET": "x"}, 403),
                              ({"HTTP_HOST": "[::1]:5"}, None)):
            got = fcgi.request(path, params | extra, b"{}")[0]
            check(got == status if status else got != 403, f"{path} {extra}: {got}")
    status, headers, body = fcgi.request(site.front, {"REQUEST_METHOD": "OPTIONS", "HTTP_ORIGIN": "https://page.test",
                                                      "HTTP_ACCESS_CONTROL_REQUEST_HEADERS": "x-evil, mcp-param-region, mcp-param-a_b"})
    equal((status, body, headers["access-control-allow-origin"]), (204, b"", "https://page.test"))
    check(headers["access-control-allow-headers"].endswith("Mcp-Name, mcp-param-region"), headers["access-control-allow-headers"])


@test("a hub that is killed is replaced; HUP replaces it as well, and ends its streams in order")
def _():
    site = sites.own()
    client = site.client()
    stream = _listen(client)
    stream.message()
    first = site.hub_process()
    os.kill(first, signal.SIGKILL)
    second = wait_until(lambda: site.hub_process() not in (None, first) and site.hub_process(), 10, "another hub")
    listen = wait_until(lambda: (s := _listen(client, "L", {"resourcesListChanged": True})).status == 200 and s, 10, "streams again")
    equal(listen.message()["method"], "notifications/subscriptions/acknowledged")
    site.reload()
    equal(listen.message()["id"], "L", "the response to the listen")
    wait_until(lambda: site.hub_process() not in (None, second), 10, "a hub with the new settings")
    stream = wait_until(lambda: (s := _listen(client, "M", {"resourcesListChanged": True})).status == 200 and s, 10, "streams after HUP")
    stream.message()
    _publish(site, kind="resources", tenant="default")
    equal(stream.message()["method"], "notifications/resources/list_changed")


@test("a burst of events reaches a stream whole and in order")
def _():
    site = sites.shared()
    uris = [f"sandbox://burst/{n}" for n in range(200)]
    stream = _listen(site.client(), "B", {"resourceSubscriptions": uris})
    stream.message()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(f"{site.folder}/run/events.sock")
        for uri in uris * 5:
            sender.send(json.dumps({"kind": "resource", "tenant": "default", "uri": uri}).encode())
    equal([stream.message()["params"]["uri"] for _ in range(1000)], uris * 5)

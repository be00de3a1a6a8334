"""Crowds: calls that wait keep no worker from others, and no tenant takes what others need."""
import json
import secrets

import fcgi
import sites
from harness import at_test_end, check, contains, equal, test, wait_until
from mcp import META_CAPABILITIES, META_VERSION, MODERN


def _other(site, tenant):
    """A client of another tenant."""
    token = secrets.token_hex(24)
    site.set_token(tenant, token)
    client = sites.new_conversation(site.client(timeout=30).with_token(token))
    wait_until(lambda: client.request("ping").status == 200, 10, "nginx knows the tenant")
    return client


def _answer(call):
    """The result of a call that was begun."""
    answer = call.getresponse()
    equal(answer.status, 200)
    return json.loads(answer.read())["result"]["structuredContent"]


def _long_run(client):
    """The id of a run that lasts until it is cancelled."""
    return client.run("sleep 600", "bash", background=True, timeout=600)["runId"]


def _wait_for(client, run, n):
    """n calls of get_run that wait; their connections."""
    calls = [client.begin_call("get_run", {"runId": run, "waitMs": 300000}) for _ in range(n)]
    for one in calls:
        at_test_end(one.close)
    return calls


@test("forty waiting calls leave four workers free: health, link checks and short calls are answered", timeout=120)
def _():
    site = sites.own({"SANDCGI_WORKERS": "4", "SANDBOX_URL_TTL": "1h", "SANDBOX_TIMEOUT_MAX": "600s"})
    client = sites.new_conversation(site.client(timeout=30))
    url = client.run("open('x', 'w').write('here')")["files"][0]["url"]
    runs = [_long_run(client) for _ in range(2)]
    calls = [call for run in runs for call in _wait_for(client, run, 20)]
    wait_until(lambda: len(site.busy_workers()) >= 40, 20, "every call has a worker")
    for _ in range(5):
        equal(site.client(timeout=30).http("GET", "/healthz").status, 200, "/healthz")
        equal(client.download(url).body, b"here", "a signed link")
        check(client.result("tools/list")["tools"], "tools/list")
        equal([one["name"] for one in client.structured("list_files", {"conversationId": client.conversation})["files"]], ["x"])
    equal(client.run("print(1)")["stdout"], "1\n")
    for run in runs:
        client.structured("cancel_run", {"runId": run})
    for call in calls:
        equal(_answer(call)["status"], "cancelled")
    wait_until(lambda: len(site.workers()) <= 8, 30, "workers that are too many end", 0.5)


@test("a reload and a stop wait for calls that wait", timeout=120)
def _():
    site = sites.own({"SANDCGI_WORKERS": "2", "SANDBOX_TIMEOUT_MAX": "600s"})
    client = sites.new_conversation(site.client(timeout=30))
    calls = _wait_for(client, client.run("sleep 12; echo end", "bash", background=True)["runId"], 8)
    wait_until(lambda: len(site.busy_workers()) >= 8, 20, "every call has a worker")
    before = set(site.workers())
    site.reload()
    wait_until(lambda: len(set(site.workers()) - before) >= 2, 20, "workers of the new generation")
    equal(client.result("ping"), {})
    for call in calls:
        equal(_answer(call)["stdout"], "end\n")
    wait_until(lambda: not before & set(site.workers()), 20, "the old generation has ended")


@test("a tenant gets no more calls than four times what is left: the others have theirs", timeout=90)
def _():
    site = sites.own({"SANDCGI_WORKERS": "2", "SANDCGI_MAX_CALLS": "5", "SANDBOX_TIMEOUT_MAX": "600s"})
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
    last = _wait_for(dave, other_run, 1)[0]
    wait_until(lambda: len(site.busy_workers()) >= 5, 20, "and waits, too")
    equal(dave.post(message, patient=False).status, 429, "now all calls are taken")
    equal(site.client(timeout=30).http("GET", "/healthz").status, 200, "/healthz")
    for call in (*calls, last):
        call.close()
    for client, own in ((alice, run), (dave, other_run)):
        wait_until(lambda client=client: client.post(message, patient=False).status == 200, 20, "room again")
        client.structured("cancel_run", {"runId": own})


@test("S8: a tenant gets no more streams than four times what is left", timeout=60)
def _():
    site = sites.own({"SANDCGI_MAX_STREAMS": "10"})

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

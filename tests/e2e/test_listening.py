"""Revision 2026-07-28 beyond plain calls: listening, progress, asking, cancelling by hanging up"""
import os
import signal
import time

import network
import runs
import sites
from harness import Failed, check, contains, equal, in_time, test, wait_until
from mcp import META_CAPABILITIES, META_VERSION, MODERN
from streams import Stream, modern_headers, modern_message, open_modern

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def _run(code, conversation, **arguments):
    return {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | arguments}


def _listen(client, id_="L1", **notifications):
    stream = open_modern(client, "subscriptions/listen", {"notifications": notifications}, id_).begin()
    equal((stream.status, stream.is_stream()), (200, True), "subscriptions/listen")
    return stream


def _acknowledged(stream, id_):
    params = stream.expect("notifications/subscriptions/acknowledged")["params"]
    equal((params["_meta"][SUBSCRIPTION], type(params["_meta"][SUBSCRIPTION])), (id_, type(id_)))
    return params["notifications"]


# ---- listening ----

@test("listen acknowledges first, with what it honours and the request's id as it was sent", core=True)
def _():
    client = sites.client()
    for id_ in ("L1", 0, 1790000000000, "\u00e9"):
        stream = _listen(client, id_, toolsListChanged=True, resourceSubscriptions=["sandbox://c/a.txt"])
        honoured = _acknowledged(stream, id_)
        equal(honoured.get("toolsListChanged"), True)
        equal(honoured.get("resourceSubscriptions"), ["sandbox://c/a.txt"])
        contains(stream.headers.get("Cache-Control", ""), "no-cache")
        stream.close()


def _settle(stream):
    """A server that has just begun tells what it learns of its engine, 2.2 s later."""
    for _ in range(5):
        try:
            stream.is_silent(3)
            return
        except Failed:
            pass
    raise Failed("the tools change all the time")


@test("a listener hears of its own files within half a second and of nothing else, another tenant's included", core=True)
def _():
    site = sites.shared()
    client = sites.client()
    eve = site.client_of("eve")
    uri = f"sandbox://{client.conversation}/a.txt"
    mine, hers = (_listen(one, one is client and 1 or 2, resourceSubscriptions=[uri]) for one in (client, eve))
    tools = _listen(client, 3, toolsListChanged=True)
    _acknowledged(mine, 1)
    _acknowledged(hers, 2)
    _acknowledged(tools, 3)
    _settle(tools)
    client.upload("other.txt", b"x")
    mine.is_silent(0.3)
    client.upload("a.txt", b"x")
    start = time.monotonic()
    told = mine.expect("notifications/resources/updated")
    in_time(start, 0.5, "told")
    equal((told["params"]["uri"], told["params"]["_meta"][SUBSCRIPTION]), (uri, 1))
    hers.is_silent(0.5)
    tools.is_silent(0.1)


@test("resources/list_changed reaches its subscribers when a run makes a file")
def _():
    client = sites.client()
    stream = _listen(client, 1, resourcesListChanged=True)
    _acknowledged(stream, 1)
    client.run("echo x > new.txt", "bash")
    stream.expect("notifications/resources/list_changed", 10)


@test("a listener hears the end of its task with the whole result, and of the file that it left; another tenant hears nothing")
def _():
    site, client = sites.shared(), sites.client()
    token = "d" * 24 + "0123456789abcdef"
    site.set_token("mallory", token)
    mallory = site.client().with_token(token)
    wait_until(lambda: mallory.request("ping").status == 200, 5, "nginx knows the new token")
    task = runs.Task(client, "until [ -e go ]; do sleep 0.1; done; echo done; echo x > late.txt", background=True)
    filters = {"notifications": {"taskIds": [task.id],
                                 "resourceSubscriptions": [f"sandbox://{client.conversation}/late.txt"]}}
    mine, hers = (open_modern(one, "subscriptions/listen", filters, "L1", capabilities=task.capabilities).begin()
                  for one in (client, mallory))
    equal(_acknowledged(mine, "L1"), filters["notifications"])
    _acknowledged(hers, "L1")
    client.upload("go", b"")
    both = [mine.next(20, "an event"), mine.next(5, "another event")]  # in either order: the hub looks the task up first
    told = {message["method"]: message["params"] for message in both if message}
    equal(sorted(told), ["notifications/resources/updated", "notifications/tasks"])
    task_told = told["notifications/tasks"]
    equal((task_told["taskId"], task_told["status"], task_told["_meta"][SUBSCRIPTION]), (task.id, "completed", "L1"))
    equal(task_told["result"]["structuredContent"]["stdout"], "done\n")
    hers.is_silent(0.5)


@test("a listen without a filter, or with a wrong one, is told so")
def _():
    client = sites.client()
    for params in ({}, {"notifications": 5}, {"notifications": {"resourceSubscriptions": "x"}}):
        answer = client.modern("subscriptions/listen", params)
        equal(answer.messages()[0].get("error", {}).get("code"), -32602, str(params))


@test("a hub that is killed is there again; streams end, workers go on")
def _():
    site = sites.own()
    client = site.client()
    stream = _listen(client, 1, toolsListChanged=True)
    _acknowledged(stream, 1)
    os.kill(site.hub_process(), signal.SIGKILL)
    check(stream.closed.wait(20), "the stream goes on")
    equal(client.request("ping").status, 200)

    def again():
        one = open_modern(client, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 2).begin()
        return one if one.status == 200 else None
    _acknowledged(wait_until(again, 10, "another hub", pause=0.2), 2)


# ---- a call's own stream ----

@test("progress of a modern run comes on the call's stream; without a token the answer is plain JSON", core=True)
def _():
    client = sites.client()
    stream = open_modern(client, "tools/call", _run("sleep 1.5; echo done", client.conversation), 5, "run_code",
                         meta={"progressToken": "p"}).begin()
    answer = stream.result()
    check(stream.is_stream(), "no event stream")
    equal(answer["result"]["structuredContent"]["stdout"].strip(), "done")
    seen = [one["params"] for one in stream.before if one["method"] == "notifications/progress"]
    check(seen and all(one["progressToken"] == "p" for one in seen), f"progress: {seen}")
    check(not any(event.id for event in stream.events), "modern streams have no event ids")
    plain = client.modern("tools/call", _run("echo done", client.conversation))
    contains(plain.headers["Content-Type"], "application/json")


@test("a log level that is none is -32602; without a level no log message is sent")
def _():
    client = sites.client()
    meta = {META_VERSION: MODERN, META_CAPABILITIES: {}}
    answer = client.modern("tools/call", _run("echo x", client.conversation), meta=meta | {LOG_LEVEL: "loud"})
    equal(answer.error_code(), -32602)
    for one in client.modern("tools/call", _run("echo x", client.conversation), meta=meta).messages():
        check(one.get("method") != "notifications/message", "a log message that was not asked for")


# ---- asking ----

def _asking_client():
    return sites.new_conversation(network.site(SANDBOX_NETWORK_ASK="true").client())


def _call(client, params, capabilities=None, **more):
    meta = {META_VERSION: MODERN, META_CAPABILITIES: {"elicitation": {}} if capabilities is None else capabilities}
    return client.modern("tools/call", params | more, meta=meta).json()


def _agree(asked):
    key, one = next(iter(asked["inputRequests"].items()))
    content = {name: {"boolean": True, "string": (p.get("enum") or ["yes"])[0]}[p["type"]]
               for name, p in one["params"]["requestedSchema"]["properties"].items()}
    return {"inputResponses": {key: {"action": "accept", "content": content}}, "requestState": asked.get("requestState")}


@test("a modern client is asked with input_required, and goes on with its answer on any worker", core=True)
def _():
    client = _asking_client()
    for _ in range(6):
        asked = _call(client, _run("echo went", client.conversation, network=True))["result"]
        equal(asked["resultType"], "input_required")
        equal([one["method"] for one in asked["inputRequests"].values()], ["elicitation/create"])
        client.close()
        done = _call(client, _run("echo went", client.conversation, network=True), **_agree(asked))["result"]
        equal((done["resultType"], done["structuredContent"]["stdout"].strip()), ("complete", "went"))


@test("declining, cancelling and nonsense do not run the program")
def _():
    client = _asking_client()
    asked = _call(client, _run("touch ran", client.conversation, network=True))["result"]
    key = next(iter(asked["inputRequests"]))
    for response in ({"action": "decline"}, {"action": "cancel"}, {}, {"action": 5}, 7, None, [],
                     {"action": "accept", "content": {"allow": False}}, {"action": "accept", "content": {"allow": "true"}},
                     {"action": "ACCEPT", "content": {"allow": True}}):
        answer = _call(client, _run("touch ran", client.conversation, network=True),
                       inputResponses={key: response}, requestState=asked.get("requestState"))
        result = answer.get("result", {})
        check("error" in answer or result.get("isError") or result["resultType"] == "input_required", f"{response}: {answer}")
    equal(client.run("ls", "bash")["stdout"], "")


@test("a state that was changed, or that belongs to another call, tool user or tenant, is -32602")
def _():
    site = network.site(SANDBOX_NETWORK_ASK="true")
    client = _asking_client()
    params = _run("echo went", client.conversation, network=True)
    asked = _call(client, params)["result"]
    agreed = _agree(asked)
    state = agreed["requestState"]
    check(isinstance(state, str) and state, "no requestState")
    middle = len(state) // 2
    for bad in (state + "x", state[:-1], "", "v1..", "v1." + state, state[:middle] + "_" + state[middle + 1:],
                state.upper(), "x" * 100000):
        answer = _call(client, params, **agreed | {"requestState": bad})
        equal(answer.get("error", {}).get("code"), -32602, bad[:30])
    other = _run("rm -rf .", client.conversation, network=True)
    equal(_call(client, other, **agreed).get("error", {}).get("code"), -32602, "other arguments")
    token = "d" * 24 + "0123456789abcdef"
    site.set_token("trudy", token)
    trudy = site.client().with_token(token)
    wait_until(lambda: trudy.request("ping").status == 200, 5, "nginx knows the new token")
    equal(_call(trudy, params, **agreed).get("error", {}).get("code"), -32602, "another tenant")
    equal(_call(client, params, **agreed)["result"]["resultType"], "complete", "the right one")


@test("a modern client that cannot be asked gets -32021 naming what it lacks, or a refusal")
def _():
    client = _asking_client()
    answer = _call(client, _run("echo went", client.conversation, network=True), capabilities={})
    if "error" in answer:
        equal(answer["error"]["code"], -32021)
        check("elicitation" in answer["error"]["data"]["requiredCapabilities"], answer)
    else:
        equal(answer["result"].get("isError"), True)


# ---- who may call ----

@test("a foreign Host or Origin is 403 on every route; pages of our own origin pass CORS (H-31, H-46)", core=True)
def _():
    site = sites.shared()
    client = site.client()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for headers in ({"Host": "evil.example.com"}, {"Host": f"evil.example.com:{site.https_port}"},
                    {"Origin": "https://evil.example.com"}, {"Origin": "null"}):
        equal(client.post(ping, headers).status, 403, f"POST {headers}")
        equal(Stream(client, None, {"Accept": "text/event-stream"} | headers).begin().status, 403, f"GET {headers}")
        listen = modern_message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        equal(Stream(client, listen, modern_headers("subscriptions/listen") | headers).begin().status, 403, f"listen {headers}")
    preflight = {"Origin": site.base_url, "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version"}
    answer = client.http("OPTIONS", "/mcp", headers=preflight)
    equal(answer.status, 204)
    equal(answer.headers["Access-Control-Allow-Origin"], site.base_url)
    for name in ("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "last-event-id"):
        contains(answer.headers["Access-Control-Allow-Headers"].lower(), name)
    answer = client.post(ping, {"Origin": site.base_url})
    equal((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, site.base_url))
    contains(answer.headers["Access-Control-Expose-Headers"].lower(), "mcp-session-id")
    refused = client.http("OPTIONS", "/mcp", headers=preflight | {"Origin": "https://evil.example.com"})
    equal((refused.status // 100, refused.headers.get("Access-Control-Allow-Origin")), (4, None))
    stream = Stream(client, modern_message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
                    modern_headers("subscriptions/listen") | {"Origin": site.base_url}).begin()
    equal((stream.status, stream.headers["Access-Control-Allow-Origin"]), (200, site.base_url))

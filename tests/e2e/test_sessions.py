"""Legacy sessions: every worker serves them, to their owner only, and what travels on their streams."""
import re
import time

import network
import runs
import sites
from harness import check, contains, equal, in_time, test, wait_until
from mcp import API, LEGACY, META_CAPABILITIES, META_VERSION, MODERN
from streams import Session, Stream

UNKNOWN_ID = "0" * 64
CAN_ASK = {META_VERSION: MODERN, META_CAPABILITIES: {"elicitation": {}}}


def _run(code, conversation, **arguments):
    return {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | arguments}


@test("initialize gives a session id of visible characters, a new one each time, in every legacy revision")
def _():
    client = sites.client()
    ids = {Session(client, revision).id for revision in LEGACY for _ in range(3)}
    equal(len(ids), 3 * len(LEGACY), "different ids")
    for one in ids:
        check(re.fullmatch(r"[\x21-\x7e]{16,256}", one), f"session id {one!r}")


@test("a session is served by every worker; without a session id a simple client is served as well")
def _():
    client = sites.client()
    session = Session(client)
    for _ in range(40):
        client.close()
        equal(session.result("ping"), {})
    equal(client.result("ping"), {})
    check(session.result("tools/list")["tools"], "no tools")


@test("an unknown session, a made-up one, another tenant's and an ended one are 404", core=True)
def _():
    site = sites.shared()
    client = sites.client()
    other = site.client_of("mallory")
    session = Session(client)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for id_ in (UNKNOWN_ID, UNKNOWN_ID[:-1], "x", "../" + session.id, session.id.upper() + "A", session.id + "0", session.id[:-1]):
        equal(client.post(ping, session.headers({"Mcp-Session-Id": id_})).status, 404, id_)
    equal(other.post(ping, session.headers()).status, 404, "another tenant's")
    equal(other.http("DELETE", API, headers=other.headers(session.headers())).status, 404, "ended by another tenant")
    equal(session.request("ping").status, 200, "still there")
    equal(session.end().status // 100, 2, "DELETE")
    equal(session.request("ping").status, 404, "after DELETE")
    equal(session.end().status, 404, "DELETE again")
    stream = session.listen()
    equal(stream.status, 404, "GET after DELETE")


@test("in a session the version header may be absent; nonsense is 400; DELETE without a session is 400")
def _():
    client = sites.client()
    session = Session(client, "2025-06-18")
    equal(session.request("ping", headers={"MCP-Protocol-Version": None}).status, 200)
    equal(session.request("ping", headers={"MCP-Protocol-Version": "1999-01-01"}).status, 400)
    equal(client.http("DELETE", API, headers=client.headers()).status, 400)


@test("batches belong to sessions of 2025-03-26; the others refuse them")
def _():
    client = sites.client()
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    answer = client.post(batch, Session(client, "2025-03-26").headers())
    equal((answer.status, len(answer.messages())), (200, 2))
    for revision in ("2025-06-18", "2025-11-25"):
        answer = client.post(batch, Session(client, revision).headers())
        equal((answer.status, answer.error_code()), (400, -32600), revision)


@test("GET needs an Accept of event streams, and a session: without one it is 405, at which clients of the older transport go on")
def _():
    client = sites.client()
    equal(Stream(client, None, {"Accept": "text/event-stream"}).begin().status, 405, "without a session")
    session = Session(client)
    equal(session.listen({"Accept": "application/json"}).status, 406, "Accept: application/json")
    first = session.listen()
    equal((first.status, first.is_stream()), (200, True))
    contains(first.headers.get("Cache-Control", ""), "no-cache")


@test("logging/setLevel, subscribe and unsubscribe answer with an empty object; a level that is none is -32602")
def _():
    session = Session(sites.client())
    for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
        equal(session.result("logging/setLevel", {"level": level}), {})
    for params in ({"level": "loud"}, {"level": 3}, {}):
        equal(session.request("logging/setLevel", params).error_code(), -32602, str(params))
    equal(session.result("resources/subscribe", {"uri": "sandbox://c/x.txt"}), {})
    equal(session.result("resources/unsubscribe", {"uri": "sandbox://c/x.txt"}), {})


@test("a subscribed file that a run changes is told on the GET stream, and no longer after unsubscribe", core=True)
def _():
    client = sites.client()
    session = Session(client)
    client.upload("watched.txt", b"1")
    client.upload("other.txt", b"1")
    uri = f"sandbox://{client.conversation}/watched.txt"
    session.result("resources/subscribe", {"uri": uri})
    stream = session.listen()
    equal(stream.status, 200)
    client.upload("other.txt", b"2")
    start = time.monotonic()
    client.run("echo 2 > watched.txt", "bash")
    told = stream.wait_for("notifications/resources/updated", 10)
    equal(told["params"]["uri"], uri)
    in_time(start, 5, "told")
    session.result("resources/unsubscribe", {"uri": uri})
    client.run("echo 3 > watched.txt", "bash")
    time.sleep(0.5)
    for message in stream.waiting():  # list_changed may have come
        check(message["method"] != "notifications/resources/updated", "told after unsubscribe")


@test("progress of a run comes on the call's own stream, in rising steps, before the answer")
def _():
    client = sites.client()
    for revision in LEGACY:
        session = Session(client, revision)
        params = _run("echo begun; echo oops >&2; sleep 1.1", client.conversation) | {"_meta": {"progressToken": f"token-{revision}"}}
        stream = session.open("tools/call", params).begin()
        answer = stream.result()
        equal(answer["result"].get("isError", False), False)
        seen = [one["params"] for one in stream.before if one["method"] == "notifications/progress"]
        check(seen, f"no progress in {revision}")
        check(all(one["progressToken"] == f"token-{revision}" for one in seen), "another token")
        steps = [one["progress"] for one in seen]
        equal(steps, sorted(set(steps)), "rising steps")
        metas = [one["_meta"] for one in seen if "_meta" in one]
        check({"sandcgi/stream": "stderr"}.items() <= metas[-1].items() and metas[-1]["sandcgi/nextByte"] == 11, f"_meta: {metas}")


@test("only streams of 2025-11-25 begin with a priming event")
def _():
    client = sites.client()
    for revision, primed in (("2025-06-18", False), ("2025-11-25", True)):
        params = _run("sleep 1.2", client.conversation) | {"_meta": {"progressToken": 7}}
        stream = Session(client, revision).open("tools/call", params).begin()
        stream.result()
        first = stream.events[0]
        equal(first.message() is None and bool(first.id), primed, f"priming in {revision}")
        if primed:
            check(first.retry and int(first.retry) > 0, "no retry")
            equal(len({event.id for event in stream.events}), len(stream.events), "ids")


@test("a stream that broke off is taken up again with Last-Event-ID, and the answer is not lost", core=True)
def _():
    client = sites.client()
    session = Session(client)
    params = _run("until [ -e go ]; do sleep 0.1; done; echo survived", client.conversation) | {"_meta": {"progressToken": 1}}
    stream = session.open("tools/call", params, id_="resumed").begin()
    wait_until(lambda: stream.events, 5, "the priming event")
    last = stream.events[-1].id
    stream.close()
    again = session.listen({"Last-Event-ID": last})
    equal(again.status, 200)
    client.upload("go", b"")
    again.request = stream.request
    answer = again.result(20)
    contains(answer["result"]["structuredContent"]["stdout"], "survived")
    # And once more, now that it has ended.
    third = session.listen({"Last-Event-ID": last})
    third.request = stream.request
    equal(third.result(5)["id"], "resumed")
    # Clients would take up an empty stream again and again.
    equal(session.listen({"Last-Event-ID": third.events[-1].id}).status, 405, "nothing is left of it")


@test("a Last-Event-ID that is made up, or another session's, opens no stream")
def _():
    client = sites.client()
    mine, others = Session(client), Session(client)
    params = _run("sleep 1.2; echo secret", client.conversation) | {"_meta": {"progressToken": 1}}
    stream = mine.open("tools/call", params).begin()
    stream.result()
    for id_ in (stream.events[0].id, UNKNOWN_ID[:32] + "-0", "x", "../../etc/passwd-0", "-1", "a" * 5000):
        answer = others.listen({"Last-Event-ID": id_})
        if answer.status == 200:
            answer.is_silent(0.5)
            answer.close()
        else:
            equal(answer.status // 100, 4, id_[:40])


@test("notifications/cancelled over another connection ends the run at once, and only in its own session", core=True)
def _():
    client = sites.client()
    session, others = Session(client), Session(client)
    stream = session.open("tools/call", _run("sleep 60", client.conversation, timeoutMs=60000), id_="long")

    def goes_on():
        return [one for one in runs.listed(client, conversationId=client.conversation) if one["status"] == "running"]
    wait_until(goes_on, 10, "the run has begun")
    equal(others.notify("notifications/cancelled", {"requestId": "long"}).status, 202)
    equal(session.notify("notifications/cancelled", {"requestId": "other"}).status, 202)
    time.sleep(0.5)
    check(goes_on(), "ended by another session's word")
    equal(session.notify("notifications/cancelled", {"requestId": "long", "reason": "test"}).status, 202)
    wait_until(lambda: not goes_on(), 5, "the run has ended")
    stream.close()


def _answer_form(params, action="accept"):
    """What a user who fills every field in would send."""
    content = {}
    for name, one in params["requestedSchema"]["properties"].items():
        content[name] = {"boolean": True, "string": (one.get("enum") or ["yes"])[0], "integer": 1, "number": 1}[one["type"]]
    return {"action": action, "content": content} if action == "accept" else {"action": action}


def asking_site():
    return network.site(SANDBOX_NETWORK_ASK="true")


@test("with SANDBOX_NETWORK_ASK a session's user is asked on the call's stream; the answer may reach any worker")
def _():
    client = sites.new_conversation(asking_site().client())
    for revision in ("2025-06-18", "2025-11-25"):
        session = Session(client, revision, {"elicitation": {}})
        for _ in range(3):
            stream = session.open("tools/call", _run("echo went", client.conversation, network=True)).begin()
            asked = stream.expect("elicitation/create", 10)
            equal(session.respond(asked["id"], _answer_form(asked["params"])).status, 202)
            equal(stream.result()["result"]["structuredContent"]["stdout"].strip(), "went")
        for action in ("decline", "cancel"):
            stream = session.open("tools/call", _run("echo went", client.conversation, network=True)).begin()
            asked = stream.expect("elicitation/create", 10)
            session.respond(asked["id"], _answer_form(asked["params"], action))
            equal(stream.result()["result"].get("isError"), True, action)


@test("a client that cannot be asked gets a clear refusal; a run without network asks nothing")
def _():
    client = sites.new_conversation(asking_site().client())
    session = Session(client, capabilities={})
    result = session.result("tools/call", _run("echo went", client.conversation, network=True))
    equal(result.get("isError"), True)
    contains(result["content"][0]["text"], "elicitation")
    equal(client.run("echo plain", "bash")["stdout"].strip(), "plain")
    asked = Session(client, capabilities={"elicitation": {}})
    equal(asked.result("tools/call", _run("echo plain", client.conversation)).get("isError", False), False)


@test("an answer to a request of the server counts only in its own session; a made-up one is 202 and ignored")
def _():
    client = sites.new_conversation(asking_site().client())
    session, others = Session(client, capabilities={"elicitation": {}}), Session(client, capabilities={"elicitation": {}})
    stream = session.open("tools/call", _run("echo went", client.conversation, network=True)).begin()
    asked = stream.expect("elicitation/create", 10)
    equal(others.respond(asked["id"], _answer_form(asked["params"])).status, 202)
    for id_ in ("nobody", 0, "../x", UNKNOWN_ID):
        equal(session.respond(id_, _answer_form(asked["params"])).status, 202, str(id_))
    stream.is_silent(0.7)
    session.respond(asked["id"], _answer_form(asked["params"]))
    equal(stream.result()["result"]["structuredContent"]["stdout"].strip(), "went")


@test("SANDBOX_NETWORK_ASK without sessions: the user's yes belongs to one program; without it nothing runs")
def _():
    client = sites.new_conversation(asking_site().client())
    code = "import os; print(len(os.listdir('/sys/class/net')))"

    def call(network=True, text=code, meta=None, **more):
        arguments = {"conversationId": client.conversation, "language": "python", "code": text, "network": network}
        return client.modern("tools/call", {"name": "run_code", "arguments": arguments, **more}, meta=meta or CAN_ASK)

    def answer(asked, action, **more):
        return call(requestState=asked["requestState"], inputResponses={"network": action}, **more)

    asked = call().json()["result"]
    equal(asked["resultType"], "input_required")
    contains(asked["inputRequests"]["network"]["params"]["message"], code)
    yes = {"action": "accept", "content": {"allow": True}}
    equal(answer(asked, yes).json()["result"]["structuredContent"]["stdout"], "2\n")
    equal(answer(asked, yes, text=code + "\n").error_code(), -32602, "another program")
    equal(call(inputResponses={"network": yes}).json()["result"]["resultType"], "input_required", "a yes to no question")
    for no in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": False}}):
        result = answer(asked, no).json()["result"]
        equal(result["isError"], True)
        contains(result["content"][0]["text"], "did not agree")
    mute = call(meta={META_VERSION: MODERN, META_CAPABILITIES: {}})
    equal((mute.status, mute.error_code()), (400, -32021), "a client that cannot ask")
    equal(call(network=False).json()["result"]["structuredContent"]["stdout"], "1\n")
    contains(client.run_error(code, network=True), "asked")

"""What clients of several nodes see through an edge: files, ids, links, sessions; a node that dies, comes back, is added."""
import functools
import json
import secrets
import threading
import time

from cluster import Cluster, named, text_of
from harness import check, contains, equal, test, wait_until
from mcp import META_CAPABILITIES, META_VERSION, MODERN, ToolError
from streams import Session, open_modern

COUNT = "import os\nn = int(open('counter').read()) + 1 if os.path.exists('counter') else 1\nopen('counter', 'w').write(str(n))\nprint(n)"


@functools.cache
def cluster():
    return Cluster(("n1", "n2", "n3"), {"SANDBOX_NETWORK": "lan", "SANDBOX_NETWORK_ASK": "true"}).start()


def new_name(what="c"):
    return f"{what}-{secrets.token_hex(5)}"


def count(client, conversation, headers=None):
    """One more in the conversation's file: what that was before tells where it is."""
    result = client.result("tools/call", {"name": "run_code", "arguments": {
        "conversationId": conversation, "language": "python", "code": COUNT}}, {"MCP-Protocol-Version": "2025-11-25"} | (headers or {}))
    check(not result.get("isError"), result)
    return int(result["structuredContent"]["stdout"])


def mark(client, conversation):
    """Leaves a file whose name says whose it is."""
    client.run(f": > home-{conversation}", "bash", conversation)


def home_of(conversation):
    found = cluster().homes([conversation])[conversation]
    equal(len(found), 1, f"homes of {conversation}")
    return cluster().node(found[0])


def conversations_of_all(client, wanted=1):
    """Node to conversations that live there, at least so many each."""
    found = {node.name: [] for node in cluster().nodes}
    while min(map(len, found.values())) < wanted:
        name = new_name()
        mark(client, name)
        found[home_of(name).name].append(name)
    return found


@test("a conversation's files are on one node, wherever its calls arrive")
def _():
    names = [new_name() for _ in range(4)]
    for n in range(1, 4):
        for name in names:
            equal(count(cluster().client(), name), n, f"call {n} of {name}")
    client = cluster().client()
    before = sum(node.answers(421) for node in cluster().nodes)
    for name in names:
        equal(count(client, name, named(name)), 4, name)
    equal(sum(node.answers(421) for node in cluster().nodes), before, "calls sent on although a header named the conversation")


@test("names that are no plain header find their homes, too")
def _():
    for name in ("zwei Wörter " + secrets.token_hex(3), " " + secrets.token_hex(4), "=?base64?YQ==?=", "\u65e5\u672c" + secrets.token_hex(3)):
        for n in range(1, 4):
            equal(count(cluster().client(), name), n, name)


@test("a call that names no conversation begins one, which later calls find")
def _():
    for _ in range(3):
        client = cluster().client()
        result = client.structured("run_code", {"language": "bash", "code": "echo new > file"})
        for _ in range(3):
            answer = cluster().client().structured("read_file", {"conversationId": result["conversationId"], "filename": "file"})
            contains(str(answer), "new")


@test("ids of runs name their node, and every call with one finds it")
def _():
    client = cluster().client()
    for name, (conversation, *_) in conversations_of_all(client).items():
        run = client.run("echo begun; sleep 30", "bash", conversation, background=True)
        contains(run["runId"], f"{name}-", "runId")
        for _ in range(3):
            equal(cluster().client().structured("get_run", {"runId": run["runId"], "waitMs": 0})["runId"], run["runId"])
        equal(cluster().client().structured("cancel_run", {"runId": run["runId"]})["status"], "cancelled")
        contains([one["runId"] for one in cluster().client().structured("list_runs", {"conversationId": conversation})["runs"]], run["runId"])


@test("tasks and sandboxes name their node, in results and as resources")
def _():
    client = cluster().client()
    for name, (conversation, *_) in conversations_of_all(client).items():
        meta = {META_VERSION: MODERN, META_CAPABILITIES: {
            "extensions": {"io.modelcontextprotocol/tasks": {}}}}
        answer = client.modern("tools/call", {"name": "run_code", "arguments": {
            "conversationId": conversation, "language": "bash", "code": "echo x; sleep 30", "background": True}}, meta=meta)
        task = answer.json()["result"]["taskId"]
        contains(task, f"{name}-", "taskId")
        for _ in range(3):
            answer = cluster().client().modern("tasks/get", {"taskId": task}, {"Mcp-Name": task}, meta)
            equal(answer.json()["result"]["taskId"], task)
        equal(cluster().client().modern("tasks/cancel", {"taskId": task}, {"Mcp-Name": task}, meta).status, 200)

        sandbox = client.structured("create_sandbox", {"conversationId": conversation, "language": "bash"})["sandboxId"]
        contains(sandbox, f"{name}-sbx_", "sandboxId")
        for _ in range(3):
            contains(cluster().client().structured("exec", {"sandboxId": sandbox, "command": "echo inside"})["stdout"], "inside")
        logs = cluster().client().result("resources/read", {"uri": f"containers://{sandbox}/logs"}, {"MCP-Protocol-Version": "2025-11-25"})
        contains(logs["contents"][0]["text"], "inside")
        equal(cluster().client().structured("get_sandbox_status", {"sandboxId": sandbox})["sandboxes"][0]["sandboxId"], sandbox)
        equal(cluster().client().structured("close_sandbox", {"sandboxId": sandbox})["status"], "closed")


@test("links name their node: files, archives, uploads")
def _():
    client = cluster().client()
    for name, (conversation, *_) in conversations_of_all(client).items():
        url = client.upload("a b é.txt", b"content", conversation)["file"]["url"]
        contains(url, f"{cluster().edge.base_url}/{name}/files/")
        answer = client.download(url)
        equal((answer.status, answer.body), (200, b"content"), url)
        archive = client.structured("download_archive", {"conversationId": conversation})["url"]
        contains(archive, f"/{name}/archives/")
        equal(client.download(archive).status, 200, archive)
        upload = client.structured("create_upload", {"conversationId": conversation, "filename": "up.bin", "size": 3})["url"]
        contains(upload, f"/{name}/uploads/")
        path = upload.removeprefix(cluster().edge.base_url)
        equal(client.http("PUT", path, b"abc", {"Content-Type": "application/octet-stream"}).status, 201, upload)
        contains(str(cluster().client().structured("list_files", {"conversationId": conversation})), "up.bin")
        equal(client.http("GET", path.replace(f"/{name}/", "/n9/")).status, 404, "a node that there is not")


@test("ids of nowhere are unknown ids; what says it comes from the edge and does not is not believed")
def _():
    client = cluster().client()
    for bogus in ("n9-" + 24 * "0", "n9-x", "n1-", "-", "n1-n2-" + 24 * "0"):
        try:
            client.structured("get_run", {"runId": bogus})
            check(False, bogus)
        except ToolError as error:
            contains(error.text, "no such run", bogus)
    mine, (conversation, *_) = next(iter(conversations_of_all(client).items()))
    other = next(node for node in cluster().nodes if node.name != mine)
    forged = {"Sandcgi-Route": f"default:{conversation}", "Sandcgi-Standin": "1", "Sandcgi-Again": "1", "Sandcgi-Edge": "x"}
    for _ in range(4):  # the edge writes its own
        contains(str(client.result("tools/call", {"name": "list_files", "arguments": {"conversationId": conversation}},
                                   {"MCP-Protocol-Version": "2025-11-25"} | forged)), f"home-{conversation}")
    answer = other.direct().request("tools/call", {"name": "list_files", "arguments": {"conversationId": conversation}}, headers=forged)
    equal(answer.status, 200)  # by another way: no edge, so it is served where it is
    check("X-Accel-Redirect" not in answer.headers, answer.headers)
    check(f"home-{conversation}" not in text_of(answer), "files of another node")
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"Authorization": "Bearer wrong"})
    equal(answer.status, 401)


@test("a session is served by every node; its calls are cancelled and its questions answered wherever they are")
def _():
    client = cluster().client()
    found = conversations_of_all(client)
    for _ in range(3):
        session = Session(cluster().client(), capabilities={"elicitation": {}})
        contains([f"{node.name}-" for node in cluster().nodes], session.id[:3])
        for name, (conversation, *_) in found.items():
            arguments = {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": "ls; sleep 30"}}
            stream = session.open("tools/call", arguments | {"_meta": {"progressToken": 1}}, id_=f"long-{name}").begin()
            stream.wait_for("notifications/progress", 20)
            equal(session.notify("notifications/cancelled", {"requestId": f"long-{name}"}).status, 202)
            wait_until(stream.closed.is_set, 10, f"the call on {name} is cancelled")
            stream = session.open("tools/call", {"name": "run_code", "arguments": {
                "conversationId": conversation, "language": "bash", "code": "ls", "network": True}}).begin()
            asked = stream.expect("elicitation/create", 20)
            contains(asked["id"], f"{name}-", "id of the question")
            equal(session.respond(asked["id"], {"action": "decline"}).status, 202)
            equal(stream.result()["result"].get("isError"), True, "what was declined")
        equal(session.end().status, 204)
        equal(session.request("ping").status, 404)


@test("a stream is taken up again at the node that has it")
def _():
    client = cluster().client()
    session = Session(client)
    for name, (conversation, *_) in conversations_of_all(client).items():
        stream = session.open("tools/call", {"name": "run_code", "_meta": {"progressToken": 1}, "arguments": {
            "conversationId": conversation, "language": "bash", "code": "echo one; sleep 3; echo two"}}).begin()
        stream.wait_for("notifications/progress", 20)
        last = stream.events[-1].id
        contains(last, f"{name}-", "event id")
        stream.close()
        again = session.listen({"Last-Event-ID": last})
        equal(again.status, 200)
        while True:
            message = again.next(20, "the answer")
            check(message is not None, "the stream ended without the answer")
            if "result" in message:
                break
        contains(str(message), "two")


@test("events of a task come to who listens for it")
def _():
    client = cluster().client()
    meta = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    for name, (conversation, *_) in conversations_of_all(client).items():
        run = client.run("sleep 3", "bash", conversation, background=True)["runId"]
        stream = open_modern(client, "subscriptions/listen", {"notifications": {"taskIds": [run]}}, capabilities=meta).begin()
        stream.expect("notifications/subscriptions/acknowledged", 10)
        equal(stream.wait_for("notifications/tasks", 20)["params"]["taskId"], run, name)
        stream.close()


# ---- a node dies, comes back, is added ----

class Caller(threading.Thread):
    """Counts in its conversations, one call after the other, until it is stopped."""

    def __init__(self, conversations):
        super().__init__(daemon=True)
        self.conversations = conversations
        self.calls = []  # (begin, end, conversation, what was counted, or None: it failed)
        self.problem = None
        self.over = threading.Event()
        self.start()

    def run(self):
        client = cluster().client(30)
        while not self.over.is_set():
            for conversation in self.conversations:
                begin, value = time.monotonic(), None
                try:
                    value = count(client, conversation)
                except (AssertionError, OSError) as problem:
                    self.problem = problem
                    client.close()
                self.calls.append((begin, time.monotonic(), conversation, value))
                self.over.wait(0.3)


@test("a node is killed under load: what was in flight there fails, all else goes on; it comes back with its files", timeout=90)
def _():
    client = cluster().client()
    found = conversations_of_all(client, 2)
    victim = cluster().node("n2")
    callers = [Caller([found["n1"][i], found["n2"][i], found["n3"][i]]) for i in range(2)]
    wait_until(lambda: all(len(caller.calls) >= 6 for caller in callers), 30, "calls before")
    kill_began = time.monotonic()
    victim.kill()
    killed = time.monotonic()
    wait_until(lambda: all(len(caller.calls) >= 15 for caller in callers), 30, "calls while it is away")
    victim.begin_again()
    back = time.monotonic()
    wait_until(lambda: all(sum(begin > back for begin, *_ in caller.calls) >= 4 for caller in callers), 30, "calls after")
    for caller in callers:
        caller.over.set()
    for caller in callers:
        caller.join()
    for caller in callers:
        for begin, end, conversation, value in caller.calls:
            in_flight = begin < killed and end > kill_began
            check(value is not None or in_flight, f"{conversation}: a call {begin - killed:.2f} s after the kill failed: {caller.problem}")
        for conversation in caller.conversations:
            at_home = [(begin, value) for begin, end, one, value in caller.calls
                       if one == conversation and (conversation not in found["n2"] or end < kill_began or begin > back)]
            values = [value for _, value in at_home if value is not None]
            check(values == sorted(values) and len(set(values)) == len(values), f"{conversation}: {values}")
            check(max(values) <= len(values) + 1, f"{conversation} counted what did not happen: {values}")
    for conversation, homes in cluster().homes(found["n2"]).items():
        contains(homes, "n2", f"nodes with files of {conversation}")


@test("while a home is away its conversations have files of their own, with a notice; back it has its own, and a second absence begins anew",
      timeout=90)
def _():
    client = cluster().client()
    conversation = conversations_of_all(client)["n2"][0]
    home, others = cluster().node("n2"), [node for node in cluster().nodes if node.name != "n2"]

    def whole(n):
        """The next call's whole answer, which has counted n."""
        result = client.tool("run_code", {"conversationId": conversation, "language": "python", "code": COUNT})
        equal(result["structuredContent"]["stdout"].strip(), str(n), "the counter")
        return str(result)

    for n in (1, 2):
        check("is away" not in whole(n), "a notice at home")
    for absence in range(2):
        home.kill()
        for n in (1, 2):
            contains(whole(n), "is away", "the answer while the home is away")
        run = client.run("sleep 60", "bash", conversation, background=True)["runId"]
        equal(sum(len(node.files_named("counter")) > 0 for node in others) >= 1, True)
        home.begin_again()
        wait_until(lambda: home.direct().http("GET", "/readyz").status == 200, 30, "the home is ready")
        check("is away" not in whole(3 + absence), "a notice after the home is back")
        equal(client.structured("cancel_run", {"runId": run})["status"], "cancelled", "a run of the absence, by its id")
        time.sleep(2)  # the stand-in looks every second whether the home is back
    wait_until(lambda: not any(json.loads(note)["inside"].endswith(conversation) for node in others for note in node.notes()), 30,
               "the files of the absences are removed")


@test("with a node more, its share of the conversations moves there, and no others")
def _():
    client = cluster().client()
    names = [new_name("m") for _ in range(24)]
    before = {}
    for name in names:
        client.structured("write_file", {"conversationId": name, "filename": f"home-{name}", "text": "x"})
    before = {name: homes[0] for name, homes in cluster().homes(names).items()}
    cluster().add("n4")
    for name in names:
        cluster().client().structured("write_file", {"conversationId": name, "filename": f"home-{name}", "text": "y", "overwrite": True})
    moved = [name for name, homes in cluster().homes(names).items() if set(homes) != {before[name]}]
    for name in moved:
        equal(sorted(cluster().homes([name])[name]), sorted({before[name], "n4"}), "a conversation moved to the new node only")
    check(1 <= len(moved) <= 24 * 0.6, f"{len(moved)} of 24 moved")

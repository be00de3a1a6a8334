"""Files as resources, prompts, completion, and the user's consent to network access."""
import base64
import json
import os
import secrets
import time

import engine
import network
import sites
from harness import at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import META_CAPABILITIES, META_VERSION, MODERN
from streams import Session
from test_streams import _listen, _site

TEMPLATE = "sandbox://{conversationId}/{+path}"
CAN_ASK = {META_VERSION: MODERN, META_CAPABILITIES: {"elicitation": {}}}


def _naming(client, *conversations):
    """A session that has named these conversations."""
    session = Session(client)
    for one in conversations:
        session.request("tools/call", {"name": "list_files", "arguments": {"conversationId": one}})
    return session


def _all_resources(session):
    found, cursor, pages = [], None, 0
    while True:
        page = session.result("resources/list", {"cursor": cursor} if cursor else {})
        found += page["resources"]
        cursor, pages = page.get("nextCursor"), pages + 1
        if not cursor:
            return found, pages
        check(pages < 200, "the pages come to an end")


def _read(client, uri):
    return client.result("resources/read", {"uri": uri})["contents"][0]


def _sandboxes(site):
    """The sandboxes that there are."""
    return [name for name in os.listdir(site.root) if len(name) == 64]


@test("the files of the conversations that a session has named are listed page by page, each once")
def _():
    client = sites.own().client()
    first, second = "first " + secrets.token_hex(3), "second/" + secrets.token_hex(3)
    client.run("import os\nfor i in range(150): open(f'{i:03}.csv', 'w').write('x' * i)\nos.symlink('/etc/passwd', 'link')", conversation=first)
    client.upload("späte Datei.txt", b"text", conversation=second)
    session = _naming(client, first, second)
    found, pages = _all_resources(session)
    equal((len(found), pages), (151, 2))
    equal(len({one["uri"] for one in found}), 151, "each once")
    late = next(one for one in found if one["name"] == "späte Datei.txt")
    equal((late["mimeType"], late["size"]), ("text/plain", 4))
    check(late["uri"].startswith("sandbox://second%2F") and late["uri"].endswith("/sp%C3%A4te%20Datei.txt"), late["uri"])
    contains(late["annotations"]["lastModified"], "T")
    equal(_read(client, late["uri"])["text"], "text")
    check(not any("link" in one["name"] for one in found), "links are no files")
    for cursor in ("nonsense", "e30=", "AAAA"):
        equal(session.request("resources/list", {"cursor": cursor}).error_code(), -32602, cursor)


@test("resources are read as text or base64, up to a bound, and only by their tenant")
def _():
    site = sites.own({"SANDBOX_FILE_MAX": "64k"})
    client = sites.new_conversation(site.client())
    token = secrets.token_hex(24)
    site.set_token("other", token)
    uri = f"sandbox://{client.conversation}/"
    client.run("open('a.csv','w').write('a,b')\nopen('b.png','wb').write(b'\\x89PNG\\0')\nopen('big.txt','w').write('x' * 70000)\n"
               "open('c.txt','wb').write(b'\\xff\\0')")
    equal(_read(client, uri + "a.csv"), {"uri": uri + "a.csv", "mimeType": "text/csv", "text": "a,b"})
    equal(base64.b64decode(_read(client, uri + "b.png")["blob"]), b"\x89PNG\0")
    equal(base64.b64decode(_read(client, uri + "c.txt")["blob"]), b"\xff\0")
    big = client.request("resources/read", {"uri": uri + "big.txt"}).json()["error"]
    contains(big["message"], "70000 bytes")
    other = client.with_token(token)
    wait_until(lambda: other.request("ping").status == 200, 5, "the other tenant's token is known")
    equal(_all_resources(_naming(other, client.conversation))[0], [], "another tenant's list")
    before = sorted(_sandboxes(site))
    for bad in (uri + "a.csv", uri + "no.csv", uri + "../a", "sandbox://guess/a", "file:///etc/passwd", uri + "%2e%2e/a"):
        equal(other.request("resources/read", {"uri": bad}).error_code(), -32002, bad)
        modern = other.modern("resources/read", {"uri": bad}, headers={"Mcp-Name": bad})
        equal((modern.status, modern.error_code()), (200, -32602), bad)
    equal(sorted(_sandboxes(site)), before, "reading makes no sandbox")


@test("a subscriber to a file is notified when a run changes it")
def _():
    client = sites.new_conversation(_site().client())
    uri = f"sandbox://{client.conversation}/out/a%20b.txt"
    stream = _listen(client, "L", {"resourceSubscriptions": [uri, "sandbox://x/not+ours"], "resourcesListChanged": True})
    honoured = stream.message()["params"]["notifications"]
    equal((honoured["resourceSubscriptions"], honoured["resourcesListChanged"]), ([uri], True))
    client.run("import os\nos.makedirs('out', exist_ok=True)\nopen('out/a b.txt', 'w').write('x')\nopen('other', 'w')")
    first, second = stream.message(), stream.message()
    equal((first["method"], first["params"]["uri"]), ("notifications/resources/updated", uri))
    equal(second["method"], "notifications/resources/list_changed")
    client.upload("out/a b.txt", b"new")
    equal(stream.message()["params"]["uri"], uri, "an upload")


@test("a new runner image is announced to listeners, and tools/list then has it", timeout=90)
def _():
    site = _site({"SANDBOX_IMAGES": "sandcgi-runner-bash,e2e-*"})
    client = site.client()
    stream = _listen(client)
    stream.message()
    language = "new" + secrets.token_hex(3)
    check(language not in json.dumps(client.result("tools/list")), "not there yet")
    at_test_end(engine.remove_image, f"e2e-{language}")
    engine.build(f"e2e-{language}", f"FROM sandcgi-runner-bash\nLABEL sandbox.language={language}\n", new_folder("image"))

    def announced():  # the first notice may be that of the start
        equal(stream.message(tools=True)["method"], "notifications/tools/list_changed")
        return language in json.dumps(client.result("tools/list"))
    wait_until(announced, 20, "tools/list after the notice")


@test("prompts name the file and how it begins; what is missing is told with what there is")
def _():
    client = sites.client()
    client.upload("sales.csv", b"month,sum\nmay,5\n")
    listed = client.result("prompts/list")["prompts"]
    equal([one["name"] for one in listed], ["analyse_data_file", "make_chart", "debug_program"])
    arguments = {"conversationId": client.conversation, "file": "sales.csv"}
    text = client.result("prompts/get", {"name": "analyse_data_file", "arguments": arguments})["messages"][0]["content"]["text"]
    contains(text, "/data/sales.csv (text/csv, 16 bytes)")
    contains(text, "month,sum\nmay,5\n")
    chart = client.result("prompts/get", {"name": "make_chart", "arguments": arguments | {"show": "sums"}})
    contains(chart["messages"][0]["content"]["text"], "/data/chart.png")
    debug = client.modern("prompts/get", {"name": "debug_program", "arguments": {"language": "bash", "program": "exit 1"}},
                          headers={"Mcp-Name": "debug_program"}).json()["result"]
    contains(debug["messages"][0]["content"]["text"], "exit 1")
    missing = client.request("prompts/get", {"name": "make_chart", "arguments": arguments | {"file": "no.csv", "show": "x"}}).json()["error"]
    equal(missing["code"], -32602)
    contains(missing["message"], "it has: sales.csv")
    equal(client.request("prompts/get", {"name": "make_chart", "arguments": {}}).error_code(), -32602)


@test("a session is offered what it has named, and nothing else of its token's conversations; without a session nothing is")
def _():
    client, other = sites.client(), sites.client()
    client.upload("mine.csv", b"1")
    other.upload("theirs.csv", b"1")

    def offered(session):
        listed = [one["name"] for one in session.result("resources/list")["resources"]]
        params = {"ref": {"type": "ref/resource", "uri": TEMPLATE}, "argument": {"name": "conversationId", "value": ""}}
        return listed, session.result("completion/complete", params)["completion"]["values"]
    first, second = _naming(client, client.conversation), _naming(client)
    equal(offered(first), (["mine.csv"], [client.conversation]))
    equal(offered(second), ([], []))
    second.request("tools/call", {"name": "list_files", "arguments": {"conversationId": other.conversation}})
    equal(offered(second), (["theirs.csv"], [other.conversation]))
    equal(offered(first), (["mine.csv"], [client.conversation]))
    equal(offered(client), ([], []))
    equal(client.modern("resources/list").json()["result"]["resources"], [])


@test("conversations, files and languages are completed")
def _():
    client = sites.client()
    session = _naming(client, client.conversation)
    client.upload("data/may.csv", b"1")
    client.upload("data/june.csv", b"1")

    def values(ref, name, value, **context):
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": context}
        return session.result("completion/complete", params)["completion"]["values"]

    resource, chart = {"type": "ref/resource", "uri": TEMPLATE}, {"type": "ref/prompt", "name": "make_chart"}
    equal(values(resource, "conversationId", client.conversation[:-3]), [client.conversation])
    equal(values(resource, "path", "data/", conversationId=client.conversation), ["data/june.csv", "data/may.csv"])
    equal(values(chart, "file", "data/m", conversationId=client.conversation), ["data/may.csv"])
    equal(values(resource, "path", "data/"), [], "of no conversation")
    equal(values({"type": "ref/prompt", "name": "debug_program"}, "language", "py"), ["python"])
    equal(values(chart, "format", ""), ["png", "svg", "pdf"])


@test("SANDBOX_NETWORK_ASK: the user's yes belongs to one program; without it nothing runs")
def _():
    client = sites.new_conversation(network.site(SANDBOX_NETWORK_ASK="true").client())
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

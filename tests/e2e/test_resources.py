"""Files as resources, prompts, completion; and that the checker of messages checks."""
import base64
import json
import os
import secrets

import engine
import schema
import sites
from harness import at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import MODERN
from streams import Session
from test_streams import _listen

LATEST = {"MCP-Protocol-Version": "2025-11-25"}
TEMPLATE = "sandbox://{conversationId}/{+path}"


def _naming(client, *conversations):
    """A session that has named these conversations."""
    session = Session(client)
    for one in conversations:
        session.request("tools/call", {"name": "list_files", "arguments": {"conversationId": one}})
    return session


def _listed(client, *conversations):
    """The resources of a session that has named the conversations, page by page: ({uri: resource}, how many came)."""
    session = _naming(client, *conversations)
    found, cursor = [], None
    for _ in range(1000):
        page = session.result("resources/list", {"cursor": cursor} if cursor else {})
        found += page["resources"]
        cursor = page.get("nextCursor")
        if not cursor:
            return {one["uri"]: one for one in found}, len(found)
    raise AssertionError("the pages do not end")


def _read(client, uri):
    return client.result("resources/read", {"uri": uri}, LATEST)["contents"]


@test("the files of the conversations that a session has named are listed once, over as many pages as it takes, with size and media type")
def _():
    client, second = sites.client(), "second/" + secrets.token_hex(3)
    client.run("mkdir -p 'sub dir'; for i in $(seq 250); do echo $i > f$i.txt; done; printf '\\211PNG\\r\\n\\032\\n' > p.png; "
               "echo x > 'sub dir/\u00e9 ?#%.md'; ln -s f1.txt link", "bash")
    client.upload("späte Datei.txt", b"text", conversation=second)
    listed, n = _listed(client, client.conversation, second)
    equal((n, len(listed)), (253, 253), "each once, links none")
    one = listed[f"sandbox://{client.conversation}/f100.txt"]
    equal((one["name"], one["size"], one["mimeType"]), ("f100.txt", 4, "text/plain"))
    contains(one["annotations"]["lastModified"], "T")
    equal(_read(client, f"sandbox://{client.conversation}/sub%20dir/%C3%A9%20%3F%23%25.md")[0]["text"], "x\n")
    late = next(one for one in listed.values() if one["name"] == "späte Datei.txt")
    equal(late["uri"], f"sandbox://{second.replace('/', '%2F')}/sp%C3%A4te%20Datei.txt")
    equal(_read(client, late["uri"])[0]["text"], "text")
    for cursor in ("nonsense", "e30=", "AAAA"):
        equal(_naming(client, second).request("resources/list", {"cursor": cursor}).error_code(), -32602, cursor)


@test("a file is read as text, or as a blob when it is not text", core=True)
def _():
    client = sites.client()
    data = bytes(range(256)) * 10
    client.upload("a.csv", b"a,b\n1,\xc3\xa9\n")
    client.upload("b.bin", data)
    text = _read(client, f"sandbox://{client.conversation}/a.csv")
    equal(text, [{"uri": f"sandbox://{client.conversation}/a.csv", "mimeType": "text/csv", "text": "a,b\n1,\u00e9\n"}])
    blob = _read(client, f"sandbox://{client.conversation}/b.bin")
    equal(base64.b64decode(blob[0]["blob"]), data)


@test("what is not there is -32002 for legacy clients and -32602 for modern ones, with the URI in data", core=True)
def _():
    client = sites.client()
    client.run("echo x > real.txt; ln -s real.txt link; ln -s /etc/passwd passwd; mkdir d; mkfifo pipe", "bash")
    base = f"sandbox://{client.conversation}/"
    for uri in (base + "no.txt", base + "link", base + "passwd", base + "d", base + "pipe", base, base + "../real.txt",
                base + "%2e%2e/real.txt", base + "%2Fetc/passwd", base + "real.txt%00", "sandbox://nobody/real.txt",
                "file:///etc/passwd", "test://nonexistent", "nonsense", ""):
        answer = client.request("resources/read", {"uri": uri}, headers=LATEST)
        check(answer.error_code() in (-32002, -32602), f"{uri}: {answer.body[:200]}")
        if uri:  # an empty header is none
            modern = client.modern("resources/read", {"uri": uri}, {"Mcp-Name": uri})
            equal(modern.error_code(), -32602, uri)
    missing = client.request("resources/read", {"uri": base + "no.txt"}, headers=LATEST).json()["error"]
    equal((missing["code"], missing["data"]["uri"]), (-32002, base + "no.txt"))
    modern = client.modern("resources/read", {"uri": base + "no.txt"}, {"Mcp-Name": base + "no.txt"}).json()["error"]
    equal(modern["data"]["uri"], base + "no.txt")


@test("a file too large to be read whole is an error that says how large it is")
def _():
    client = sites.client()
    client.run("truncate -s 200M big.bin", "bash")
    answer = client.request("resources/read", {"uri": f"sandbox://{client.conversation}/big.bin"}, headers=LATEST)
    contains(answer.json()["error"]["message"], "209715200 bytes")


@test("a made-up cursor is -32602 on every list")
def _():
    client = sites.client()
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        for cursor in ("x", "AAAA", "../", "a" * 10000, "\u00e9"):
            equal(client.request(method, {"cursor": cursor}, headers=LATEST).error_code(), -32602, f"{method} {cursor[:9]}")
        equal(client.request(method, {"cursor": 5}, headers=LATEST).error_code(), -32602, method)


@test("another tenant neither lists nor reads a file, and reading makes no sandbox", core=True)
def _():
    site = sites.shared()
    client = sites.client()
    client.upload("mine.txt", b"mine")
    other = site.client_of("oscar")
    uri = f"sandbox://{client.conversation}/mine.txt"
    check(uri in _listed(client, client.conversation)[0], "not in the owner's list")
    check(uri not in _listed(other, client.conversation)[0], "in another tenant's list")
    before = sorted(os.listdir(site.root))
    for bad in (uri, "sandbox://guess/a"):
        equal(other.request("resources/read", {"uri": bad}, headers=LATEST).error_code(), -32002, bad)
        modern = other.modern("resources/read", {"uri": bad}, headers={"Mcp-Name": bad})
        equal((modern.status, modern.error_code()), (200, -32602), bad)
    equal(sorted(os.listdir(site.root)), before, "sandboxes")


@test("a session is offered what it has named, and nothing else of its token's conversations; without a session nothing is", core=True)
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


@test("templates name the sandbox's scheme")
def _():
    templates = sites.client().result("resources/templates/list", headers=LATEST)["resourceTemplates"]
    equal([one["uriTemplate"] for one in templates if one["uriTemplate"].startswith("sandbox://")], [TEMPLATE])


@test("a subscriber to a file is notified when a run changes it")
def _():
    client = sites.client()
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
    site = sites.own({"SANDBOX_IMAGES": f"{engine.WORKBENCH},e2e-*"})
    client = site.client()
    stream = _listen(client)
    stream.message()
    language = "new" + secrets.token_hex(3)
    check(language not in json.dumps(client.result("tools/list")), "not there yet")
    at_test_end(engine.remove_image, f"e2e-{language}")
    engine.build(f"e2e-{language}", engine.shell_runner(language), new_folder("image"))

    def announced():  # the first notice may be that of the start
        equal(stream.message(tools=True)["method"], "notifications/tools/list_changed")
        return language in json.dumps(client.result("tools/list"))
    wait_until(announced, 20, "tools/list after the notice")


@test("prompts name the file and how it begins; what is missing is told, with what there is", core=True)
def _():
    client = sites.client()
    client.upload("sales.csv", b"month,sum\nmay,5\n")
    prompts = client.result("prompts/list", headers=LATEST)["prompts"]
    equal([one["name"] for one in prompts], ["analyse_data_file", "make_chart", "debug_program"])
    for prompt in prompts:
        check(prompt["description"] and prompt["title"], prompt["name"])
        answer = client.request("prompts/get", {"name": prompt["name"]}, headers=LATEST)
        equal(answer.error_code(), -32602)
        contains(answer.json()["error"]["message"], next(one["name"] for one in prompt["arguments"] if one["required"]))
    equal(client.request("prompts/get", {"name": "no such"}, headers=LATEST).error_code(), -32602)
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


@test("conversations, files and languages are completed; what there is not is -32602")
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
    for params in ({"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}},
                   {"ref": {"type": "nope"}, "argument": {"name": "a", "value": ""}}, {"ref": 5}, {}):
        equal(client.request("completion/complete", params, headers=LATEST).error_code(), -32602, str(params))


@test("the checker of messages finds what is wrong with a message")
def _():
    good = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x"}]}}
    for revision in schema.REVISIONS[:-1]:
        equal(schema.problems_of(good, schema.of(revision), "tools/call"), [], revision)
    bad = [
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text"}]}}, "tools/call"),
        ("2025-03-26", {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "resource_link", "uri": "a:b", "name": "x"}]}},
         "tools/call"),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}, "ping"),
        ("2025-11-25", {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "x"}}, None),
        ("2025-11-25", {"jsonrpc": "2.0", "id": True, "result": {}}, None),
        ("2025-03-26", {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}, None),
        (MODERN, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, None),
        (MODERN, good, "tools/call"),
        (MODERN, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "x"}}, None),
        (MODERN, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32021, "message": "x", "data": {}}}, None),
        (MODERN, {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {}}, None),
    ]
    for revision, message, method in bad:
        check(schema.problems_of(message, schema.of(revision), method), f"passed: {revision} {message}")

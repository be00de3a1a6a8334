"""Files as resources, prompts, completion; and that the checker of messages checks."""
import base64

import schema
import sites
from harness import check, contains, equal, test, wait_until
from mcp import MODERN
from streams import Session

LATEST = {"MCP-Protocol-Version": "2025-11-25"}


def _listed(client, conversation):
    """The resources of a session that has named the conversation, page by page: [(uri, resource)]."""
    session = Session(client)
    session.request("tools/call", {"name": "list_files", "arguments": {"conversationId": conversation}})
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


@test("every file of a conversation is listed once, over as many pages as it takes, with size and media type")
def _():
    client = sites.client()
    client.run("mkdir -p 'sub dir'; for i in $(seq 250); do echo $i > f$i.txt; done; printf '\\211PNG\\r\\n\\032\\n' > p.png; "
               "echo x > 'sub dir/\u00e9 ?#%.md'; ln -s f1.txt link", "bash")
    listed, n = _listed(client, client.conversation)
    equal(n, len(listed), "each once")
    mine = {uri: one for uri, one in listed.items() if uri.startswith(f"sandbox://{client.conversation}/")}
    equal(len(mine), 252)
    one = mine[f"sandbox://{client.conversation}/f100.txt"]
    equal((one["name"], one["size"], one["mimeType"]), ("f100.txt", 4, "text/plain"))
    check(f"sandbox://{client.conversation}/sub%20dir/%C3%A9%20%3F%23%25.md" in mine, "the odd name")
    equal(_read(client, f"sandbox://{client.conversation}/sub%20dir/%C3%A9%20%3F%23%25.md")[0]["text"], "x\n")


@test("a file is read as text, or as a blob when it is not text")
def _():
    client = sites.client()
    data = bytes(range(256)) * 10
    client.upload("a.csv", b"a,b\n1,\xc3\xa9\n")
    client.upload("b.bin", data)
    text = _read(client, f"sandbox://{client.conversation}/a.csv")
    equal([(one["text"], one["mimeType"]) for one in text], [("a,b\n1,\u00e9\n", "text/csv")])
    blob = _read(client, f"sandbox://{client.conversation}/b.bin")
    equal(base64.b64decode(blob[0]["blob"]), data)


@test("what is not there is -32002 for legacy clients and -32602 for modern ones, with the URI in data")
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


@test("a file too large to be read whole is an error that says so, and costs the worker nothing")
def _():
    client = sites.client()
    client.run("head -c 200M /dev/zero > big.bin", "bash", timeout=60)
    answer = client.request("resources/read", {"uri": f"sandbox://{client.conversation}/big.bin"}, headers=LATEST)
    check("error" in answer.json(), "not refused")
    check(answer.json()["error"]["message"], "no message")


@test("a made-up cursor is -32602 on every list")
def _():
    client = sites.client()
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        for cursor in ("x", "AAAA", "../", "a" * 10000, "\u00e9"):
            equal(client.request(method, {"cursor": cursor}, headers=LATEST).error_code(), -32602, f"{method} {cursor[:9]}")
        equal(client.request(method, {"cursor": 5}, headers=LATEST).error_code(), -32602, method)


@test("another tenant neither lists nor reads a file")
def _():
    site = sites.shared()
    client = sites.client()
    client.upload("mine.txt", b"mine")
    token = "e" * 24 + "0123456789abcdef"
    site.set_token("oscar", token)
    other = site.client().with_token(token)
    wait_until(lambda: other.request("ping").status == 200, 5, "nginx knows the new token")
    uri = f"sandbox://{client.conversation}/mine.txt"
    check(uri in _listed(client, client.conversation)[0], "not in the owner's list")
    check(uri not in _listed(other, client.conversation)[0], "in another tenant's list")
    check(other.request("resources/read", {"uri": uri}, headers=LATEST).error_code() in (-32002, -32602), "read")


@test("templates name the sandbox's scheme; prompts are listed, got, and say which argument is missing")
def _():
    client = sites.client()
    templates = client.result("resources/templates/list", headers=LATEST)["resourceTemplates"]
    check(any(one["uriTemplate"].startswith("sandbox://") for one in templates), templates)
    prompts = client.result("prompts/list", headers=LATEST)["prompts"]
    names = {one["name"] for one in prompts}
    client.upload("data.csv", b"a,b\n1,2\n")
    known = {"conversationId": client.conversation, "file": "data.csv", "format": "png"}
    check({"analyse_data_file", "make_chart", "debug_program"} <= names, names)
    for prompt in prompts:
        check(prompt["description"] and prompt["title"], prompt["name"])
        arguments = {one["name"]: known.get(one["name"], "python") for one in prompt.get("arguments", [])}
        got = client.result("prompts/get", {"name": prompt["name"], "arguments": arguments}, LATEST)
        check(got["messages"], "no messages")
        required = [one["name"] for one in prompt.get("arguments", []) if one.get("required")]
        if required:
            answer = client.request("prompts/get", {"name": prompt["name"]}, headers=LATEST)
            equal(answer.error_code(), -32602)
            contains(answer.json()["error"]["message"], required[0])
    equal(client.request("prompts/get", {"name": "no such"}, headers=LATEST).error_code(), -32602)


@test("completion suggests languages for prompts; an unknown prompt is -32602")
def _():
    client = sites.client()
    values = []
    for prompt in client.result("prompts/list", headers=LATEST)["prompts"]:
        for argument in prompt.get("arguments", []):
            found = client.result("completion/complete", {
                "ref": {"type": "ref/prompt", "name": prompt["name"]},
                "argument": {"name": argument["name"], "value": "py"}}, LATEST)["completion"]
            check(len(found["values"]) <= 100, "more than 100")
            values += found["values"]
    check("python" in values, f"suggestions: {values}")
    for params in ({"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}},
                   {"ref": {"type": "nope"}, "argument": {"name": "a", "value": ""}}, {"ref": 5}, {}):
        equal(client.request("completion/complete", params, headers=LATEST).error_code(), -32602, str(params))


@test("what a revision does not know is not sent to it: pictures and links in answers of 2024-11-05 and 2025-03-26")
def _():
    client = sites.client()
    code = ("import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; p.plot([1,2]); p.savefig('c.png')")
    for revision in schema.REVISIONS[:-1]:
        params = {"name": "run_code", "arguments": {"conversationId": client.conversation, "language": "python",
                                                    "code": code + f"; open('f-{revision}.txt', 'w').write('x')"}}
        result = Session(client, revision).result("tools/call", params)
        kinds = {block["type"] for block in result["content"]}
        check("image" in kinds, kinds)
        equal("resource_link" in kinds, revision >= "2025-06-18", revision)
    modern = client.modern("tools/call", params, {"Mcp-Name": "run_code"}).json()["result"]
    equal(modern["resultType"], "complete")


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

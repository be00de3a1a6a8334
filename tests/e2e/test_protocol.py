"""MCP over HTTP: both eras, header checks, and what is no valid message."""
import hashlib
import json
import time

import sites
from harness import check, contains, equal, in_time, test
from mcp import API, LEGACY, META_CAPABILITIES, META_VERSION, MODERN

EMPTY_CAPABILITIES = {"name": "e2e", "version": "1"}


def _client():
    return sites.shared().client()


def _initialize(client, version, headers=None):
    return client.request("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": EMPTY_CAPABILITIES}, headers=headers)


# ---- legacy ----

@test("initialize answers every legacy revision with itself, and anything else with the latest legacy one", core=True)
def _():
    client = _client()
    for version in LEGACY:
        result = _initialize(client, version).json()["result"]
        equal(result["protocolVersion"], version)
        check("tools" in result["capabilities"], "no tools capability")
        check(result["serverInfo"]["name"] and result["serverInfo"]["version"], "no serverInfo")
    for version in ("1999-01-01", MODERN, "nonsense"):
        equal(_initialize(client, version).json()["result"]["protocolVersion"], LEGACY[-1], version)


@test("notifications and responses are accepted with 202 and an empty body (H-20)", core=True)
def _():
    client = _client()
    for message in ({"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                    {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
                    {"jsonrpc": "2.0", "id": 5, "result": {}}):
        answer = client.post(message)
        equal((answer.status, answer.body), (202, b""), json.dumps(message))


@test("ping answers an empty object, in every legacy revision and without a header")
def _():
    client = _client()
    for headers in [{}] + [{"MCP-Protocol-Version": version} for version in LEGACY]:
        equal(client.result("ping", headers=headers), {})


@test("tools/list is the same bytes a hundred times, over connections of their own")
def _():
    client = sites.client()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    hashes = {hashlib.sha256(client.fresh().post(body).body).digest() for _ in range(100)}
    equal(len(hashes), 1, "different answers")


@test("tools/list has titles, schemas and honest annotations")
def _():
    client = _client()
    tools = client.result("tools/list", headers={"MCP-Protocol-Version": LEGACY[-1]})["tools"]
    check(len(tools) > 20, len(tools))
    for tool in tools:
        check(tool["title"] and tool["description"], f"{tool['name']} without title or description")
        equal(tool["inputSchema"]["type"], "object")
        equal(tool["outputSchema"]["type"], "object")
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    for reader in ("list_runners", "list_runs", "get_run"):
        equal(hints[reader]["readOnlyHint"], True)
    equal(hints["cancel_run"]["destructiveHint"], True)
    equal(hints["run_code"]["readOnlyHint"], False)
    equal(hints["run_code"]["destructiveHint"], True)
    run_code = next(tool for tool in tools if tool["name"] == "run_code")
    equal(sorted(run_code["inputSchema"]["required"]), ["code", "language"])
    for language in ("bash", "python", "typescript"):
        check(language in run_code["inputSchema"]["properties"]["language"]["enum"], f"{language} is not in the enum")
    for library in ("pandas", "exceljs"):
        contains(run_code["description"], library)


@test("ids are echoed exactly: strings, zero, negative numbers, beyond 2^53 (H-20)", core=True)
def _():
    client = _client()
    for id_ in ("x", "", "1", "\u00e9\U0001f600", 0, -7, 2**53 + 1, 9007199254740993, "a" * 1000):
        answer = client.post({"jsonrpc": "2.0", "id": id_, "method": "ping"}).json()
        equal((answer["id"], type(answer["id"])), (id_, type(id_)))


@test("a null, boolean, fractional or structured id is refused (H-20)")
def _():
    client = _client()
    for id_ in (None, True, [], {}, 1.5):
        answer = client.post({"jsonrpc": "2.0", "id": id_, "method": "ping"})
        equal((answer.status, answer.error_code()), (400, -32600), repr(id_))


@test("batches are answered in revision 2025-03-26 and refused in the others", core=True)
def _():
    client = _client()
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": "two", "method": "tools/list"}, {"jsonrpc": "2.0", "id": 3, "method": "nope"}]
    for headers in ({}, {"MCP-Protocol-Version": "2025-03-26"}):
        answer = client.post(batch, headers)
        equal(answer.status, 200)
        by_id = {one["id"]: one for one in answer.json()}
        equal(set(by_id), {1, "two", 3})
        check("result" in by_id["two"] and by_id[3]["error"]["code"] == -32601, "wrong answers in the batch")
    equal(client.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).status, 202)
    for version in ("2025-06-18", "2025-11-25", MODERN):
        answer = client.post(batch, {"MCP-Protocol-Version": version})
        equal((answer.status, answer.error_code()), (400, -32600), version)
    for bad in ([], [1], [batch[0]] * 33):
        answer = client.post(bad)
        equal((answer.status, answer.error_code()), (400, -32600), str(bad)[:40])


@test("legacy errors: unknown method 200 -32601, unknown tool -32602 naming what exists, unsupported version 400", core=True)
def _():
    client = _client()
    answer = client.request("no/such")
    equal((answer.status, answer.error_code()), (200, -32601))
    answer = client.request("tools/call", {"name": "rm", "arguments": {}})
    equal((answer.status, answer.error_code()), (200, -32602))
    contains(answer.body.decode(), "run_code")
    equal(client.request("ping", headers={"MCP-Protocol-Version": "1999-01-01"}).status, 400)
    equal(client.request("tools/call", {"name": 5}).error_code(), -32602)
    equal(client.request("tools/call").error_code(), -32602)


# ---- modern ----

@test("modern discover, list and call carry resultType, serverInfo and caching hints", core=True)
def _():
    client = sites.client()
    discover = client.modern("server/discover").json()["result"]
    equal(discover["supportedVersions"], [MODERN])
    check("tools" in discover["capabilities"], "no tools capability")
    listed = client.modern("tools/list").json()["result"]
    called = client.modern("tools/call", {"name": "list_runners", "arguments": {}}).json()["result"]
    for result in (discover, listed, called):
        equal(result["resultType"], "complete")
        check(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "no serverInfo")
    for result in (discover, listed):
        check(isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0, "no ttlMs")
        check(result["cacheScope"] in ("public", "private"), "no cacheScope")
    equal(called["isError"] if "isError" in called else False, False)
    check(called["structuredContent"]["languages"], "no languages")


@test("modern headers are compared with the body: absent, different and badly encoded ones are -32020", core=True)
def _():
    client = _client()
    call = {"name": "list_runners", "arguments": {}}
    cases = [("tools/list", {}, {"MCP-Protocol-Version": None}),
             ("tools/list", {}, {"MCP-Protocol-Version": "2025-11-25"}),
             ("tools/list", {}, {"Mcp-Method": None}),
             ("tools/list", {}, {"Mcp-Method": "tools/call"}),
             ("tools/list", {}, {"Mcp-Method": "TOOLS/LIST"}),
             ("tools/call", call, {"Mcp-Name": None}),
             ("tools/call", call, {"Mcp-Name": "run_code"}),
             ("tools/call", call, {"Mcp-Name": "=?base64?bGlzdF9ydW5uZXJz!?="}),
             ("tools/call", call, {"Mcp-Name": "=?base64?bGlzdF9ydW5uZXJ?="})]
    for method, params, headers in cases:
        answer = client.modern(method, params, headers)
        equal((answer.status, answer.error_code(), answer.json().get("id")), (400, -32020, 1), f"{method} {headers}")
    equal(client.modern("tools/call", call, {"Mcp-Name": "=?base64?bGlzdF9ydW5uZXJz?="}).status, 200)
    equal(client.modern("tools/call", call, {"Mcp-Name": "  list_runners\t"}).status, 200)


@test("modern errors: version -32022 with data, missing _meta -32602, unknown method 404, unknown tool 200 -32602", core=True)
def _():
    client = _client()
    answer = client.modern("tools/list", meta={META_VERSION: "2099-01-01", META_CAPABILITIES: {}},
                           headers={"MCP-Protocol-Version": "2099-01-01"})
    equal((answer.status, answer.error_code()), (400, -32022))
    equal(answer.json()["error"]["data"], {"supported": [MODERN], "requested": "2099-01-01"})
    answer = client.modern("tools/list", meta={META_VERSION: "2025-11-25", META_CAPABILITIES: {}},
                           headers={"MCP-Protocol-Version": "2025-11-25"})
    equal((answer.status, answer.error_code()), (400, -32022), "a legacy version claimed per request")
    equal(client.request("tools/list", {}, headers={"MCP-Protocol-Version": MODERN}).error_code(), -32602)
    for meta in ({META_VERSION: MODERN}, {META_VERSION: MODERN, META_CAPABILITIES: 1}, {META_VERSION: 5}):
        answer = client.modern("tools/list", meta=meta)
        equal((answer.status, answer.error_code()), (400, -32602), json.dumps(meta))
    for method in ("ping", "initialize", "no/such", "logging/setLevel"):
        answer = client.modern(method)
        equal((answer.status, answer.error_code()), (404, -32601), method)
    answer = client.modern("tools/call", {"name": "rm", "arguments": {}})
    equal((answer.status, answer.error_code()), (200, -32602))
    answer = client.modern("tools/call", {"name": "run_code", "arguments": {"language": 5}})
    equal((answer.status, answer.json()["result"]["isError"]), (200, True))


@test("a modern header on initialize is -32020; Mcp-Method on legacy traffic is ignored")
def _():
    client = _client()
    answer = _initialize(client, LEGACY[-1], {"MCP-Protocol-Version": MODERN})
    equal((answer.status, answer.error_code()), (400, -32020))
    equal(_initialize(client, LEGACY[-1], {"Mcp-Method": "tools/list", "Mcp-Name": "x"}).status, 200)


@test("an error that knows no id leaves it out")
def _():
    client = _client()
    for body in (b"{", b"[]", b'"text"', b'{"jsonrpc":"2.0"}'):
        answer = client.post(body).json()
        check("id" not in answer, f"{body!r} answered with id {answer.get('id')!r}")
        equal(answer["jsonrpc"], "2.0")


# ---- what is no valid message ----

@test("not JSON is 400 -32700: half a value, trailing text, duplicate keys, bad UTF-8, NUL bytes, deep nesting", core=True)
def _():
    client = _client()
    deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100000 + b"]" * 100000 + b"}}"
    for body in (b"", b"{", b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', b'{"a":1,"a":2}', b'{"a":"\xff\xfe"}',
                 b'{"jsonrpc":"2.0","id":1,"method":"ping"}\0', b"nul", b"{'a':1}", b'{"a":\x01}', deep,
                 b'{"id":"\\ud800","jsonrpc":"2.0","method":"ping"}'):
        start = time.monotonic()
        answer = client.post(body)
        equal((answer.status, answer.error_code()), (400, -32700), f"{body[:40]!r}")
        in_time(start, 2, "answered")


@test("JSON that is no JSON-RPC message is 400 -32600")
def _():
    client = _client()
    for message in (1, "x", None, {}, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 1},
                    {"jsonrpc": "2.0", "id": 1, "method": 5}, {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 3},
                    {"id": 1, "method": "ping"}):
        answer = client.post(message)
        equal((answer.status, answer.error_code()), (400, -32600), json.dumps(message))


@test("the wrong content type is 415, an Accept that excludes JSON 406, a foreign Origin 403, a method that there is not 405", core=True)
def _():
    site = sites.shared()
    client = site.client()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", None):
        equal(client.post(ping, {"Content-Type": kind}).status, 415, str(kind))
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        equal(client.post(ping, {"Content-Type": kind}).status, 200, kind)
    equal(client.post(ping, {"Accept": "image/png"}).status, 406)
    for accept in (None, "*/*", "application/json", "text/event-stream, application/json;q=0.5"):
        equal(client.post(ping, {"Accept": accept}).status, 200, str(accept))
    for origin in ("https://evil.example", "null", site.base_url + ".evil.example", "http://localhost"):
        equal(client.post(ping, {"Origin": origin}).status, 403, origin)
    equal(client.post(ping, {"Origin": site.base_url}).status, 200)
    answer = client.http("PUT", API, headers=client.headers())
    equal(answer.status, 405)
    contains(answer.headers.get("Allow", ""), "POST")


@test("a body over the limit is 413 in JSON, before any worker sees it (H-11)", core=True)
def _():
    site = sites.shared()
    client = site.client()
    before, refused = site.log().count("status="), site.log().count("status=413")
    answer = client.http("POST", API, b"x" * (17 * 1024 * 1024), client.headers())
    equal(answer.status, 413)
    check("error" in answer.json(), "no JSON-RPC error")
    equal(site.log().count("status=413"), refused)
    client.close()
    check(site.log().count("status=") - before <= 1, "a worker saw it")


@test("no token and a wrong token are 401 with WWW-Authenticate and a JSON body", core=True)
def _():
    site = sites.shared()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for token in (None, "wrong", site.token[:-1], site.token.upper(), site.token + "x", ""):
        answer = site.client().with_token(token).post(ping)
        equal(answer.status, 401, repr(token))
        contains(answer.headers["WWW-Authenticate"], "Bearer")
        check("error" in answer.json(), "no JSON body")
    equal(site.client().with_token(None).http("POST", f"/mcp?token={site.token}", b"{}", {}).status // 100, 4)


@test("tenants with tokens of their own do not see each other's files (H-08)", core=True)
def _():
    site = sites.shared()
    alice, default = site.client_of("alice"), sites.client()
    alice.conversation = default.conversation
    default.upload("mine.txt", b"default's")
    equal(alice.run("ls -A", "bash")["stdout"], "")
    urls = {c.upload("same.txt", b"x")["file"]["url"] for c in (alice, default)}
    equal(len(urls), 2, "different directories")


@test("the front door stays open: a hundred kept-alive calls, a hundred new connections")
def _():
    client = _client()
    for _ in range(100):
        equal(client.request("ping").status, 200)
    for _ in range(100):
        client.close()
        equal(client.request("ping").status, 200)


@test("no answer may be stored: calls, errors and refusals say so (H-54)")
def _():
    client = sites.client()
    for answer in (client.request("ping"), client.request("no/such"), client.with_token("wrong").request("ping")):
        contains(answer.headers.get("Cache-Control", ""), "no-store", f"Cache-Control of {answer.status}")

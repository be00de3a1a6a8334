"""Which tools a place, a tenant and the settings offer; conversations that the server names."""
import json

import sites
from harness import check, contains, equal, test
from mcp import RUN_HEADERS
from stdio import Stdio

CORE = ["run_code", "get_run", "cancel_run", "list_files", "read_file", "write_file", "upload_file", "create_upload", "install_package", "list_runners"]
HIDDEN = {"waitMs": 60000, "environment": {"COLOUR": "blue"}, "args": ["one"]}  # arguments of run_code that no list shows


def _site():
    """Its settings say nothing about tools, but those of one tenant do."""
    return sites.with_settings(TOOLS=None, nginx={"PROFILES": "files", "TOOLSETS": "carol=sandboxes+admin"})


def _client():
    return sites.new_conversation(_site().client())


def _ask(client, method, params=None, path="/mcp"):
    message = {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params else {})
    return client.post(message, RUN_HEADERS, path).json()


def _rows(client, path="/mcp"):
    return {row["name"]: row for row in _ask(client, "tools/list", path=path)["result"]["tools"]}


def _properties(client, tool):
    return set(_rows(client)[tool]["inputSchema"].get("properties", ()))


def _call(client, tool, path="/mcp", **arguments):
    answer = _ask(client, "tools/call", {"name": tool, "arguments": arguments}, path)
    return answer.get("result") or answer["error"]["message"]


def _text(result):
    return "\n".join(block.get("text", "") for block in result["content"])


def _named(result):
    """The conversation that an answer names."""
    return _text(result).rpartition("conversationId: ")[2].split()[0].rstrip(",.")


@test("/mcp offers the core, /mcp/all everything, /mcp/files the core and its own; a tenant may find others at /mcp", core=True)
def _():
    client = _client()
    equal(list(_rows(client)), CORE)
    every = list(_rows(client, "/mcp/all"))
    equal(every[:len(CORE)], CORE)
    check({"move_file", "import_url", "exec", "list_runs"} < set(every), every)
    equal(list(_rows(client, "/mcp/files")), [*CORE, "move_file", "delete_file"])
    theirs = _site().client_of("carol")
    carol = set(_rows(theirs))
    check({"exec", "list_runs"} < carol and "move_file" not in carol, carol)
    equal(list(_rows(theirs, "/mcp/all")), every)


@test("a call of a tool that is offered elsewhere is refused with its toolset and its place, and works there")
def _():
    client = _client()
    refused = _call(client, "list_runs")
    contains(refused, 'toolset "admin"')
    contains(refused, "/mcp/all")
    check(not _call(client, "list_runs", "/mcp/all")["isError"], "refused at /mcp/all")
    contains(_call(client, "nonsense"), "unknown tool")


@test("without conversationId each call has a new conversation, which its answer names and later calls use", core=True, timeout=120)
def _():
    client = _client()
    made = []
    for n in range(2):
        result = _call(client, "run_code", language="bash", code=f"echo there are $(ls | wc -l); echo {n} >mine.txt")
        contains(_text(result), "there are 0")
        made.append(_named(result))
    check(made[0] != made[1] and min(map(len, made)) > 16, made)
    for n, name in enumerate(made):
        contains(_text(_call(client, "run_code", conversationId=name, language="bash", code="echo it is $(cat mine.txt)")), f"it is {n}")
        contains(_text(_call(client, "read_file", conversationId=name, filename="mine.txt")), str(n))
    written = _named(_call(client, "write_file", filename="a.txt", text="from write_file"))
    contains(_text(_call(client, "read_file", conversationId=written, filename="a.txt")), "from write_file")
    uploaded = _named(_call(client, "upload_file", filename="b.txt", content="YmFzZTY0"))
    contains(_text(_call(client, "read_file", conversationId=uploaded, filename="b.txt")), "base64")
    contains(_text(_call(client, "list_files")), "'conversationId' is required: a new conversation has no files")


@test("what run_code does not list is taken and checked all the same")
def _():
    client = _client()
    shown = _properties(client, "run_code")
    check(not shown & set(HIDDEN) and len(shown) <= 8, shown)
    result = _call(client, "run_code", language="bash", code="echo $COLOUR $1", conversationId=client.conversation, **HIDDEN)
    contains(_text(result), "blue one")
    contains(_text(_call(client, "run_code", language="bash", code="", args=1)), "argument 'args'")


@test("tools and arguments follow the settings, names have the prefix")
def _():
    site = sites.with_settings(SANDBOX_INDEXES="", SANDBOX_IMPORT="false", SANDBOX_PERSISTENT_MAX="0", SANDBOX_BACKGROUND_MAX="0",
                               SANDBOX_STDIN_MAX="0", TOOLS_PREFIX="box_")
    rows = _rows(site.client())
    check(all(name.startswith("box_") for name in rows), rows)
    gone = {f"box_{name}" for name in ("install_package", "import_url", "create_sandbox", "exec", "reset_session")}
    check(not gone & set(rows), rows)
    equal(set(rows["box_run_code"]["inputSchema"]["properties"]), {"language", "code", "conversationId", "timeoutMs"})
    for name in ("box_run_code", "run_code"):
        contains(_text(_call(site.client(), name, language="bash", code="echo works")), "works")
    contains(_text(_call(site.client(), "box_run_code", language="bash", code="sleep 60", waitMs=1)), "\nbox_get_run with runId ")
    contains(_call(site.client(), "box_import_url", url="https://example.org"), "switched off")
    contains(_text(_call(site.client(), "box_run_code", language="bash", code="true", waitMs=0)), "SANDBOX_BACKGROUND_MAX is 0")


@test("stdio offers the core, and more by --tools; a wrong name stops the start")
def _():
    site = _site()
    core = [name for name in CORE if name != "create_upload"]
    for options, want in (((), core), (("--tools", "files,transfer"), [*core, "move_file", "delete_file", "import_url", "upload_archive"])):
        client = Stdio(site.config, options=options)
        client.initialize()
        names = [row["name"] for row in client.result("tools/list")["tools"]]
        equal([name for name in names if not name.startswith("copy_")], want)
    wrong = sites.own({"TOOLS": "core,runner"}, start=False)
    wrong.start_server()
    check(wrong.process.wait(60) != 0, "it starts")
    contains(wrong.log(), "TOOLS=core,runner must be one of")


@test("the instructions and the list at /mcp cost a model 2,000 tokens at most (characters / 4)", core=True)
def _():
    client = _client()
    told = _ask(client, "initialize", {"protocolVersion": RUN_HEADERS["MCP-Protocol-Version"], "capabilities": {},
                                       "clientInfo": {"name": "x", "version": "1"}})["result"]["instructions"]
    size = len(told) + len(json.dumps(list(_rows(client).values()), ensure_ascii=False, separators=(",", ":")))
    check(size <= 8000, f"{size} characters")


@test("instructions say what a list of names does not")
def _():
    answer = _ask(_client(), "initialize", {"protocolVersion": RUN_HEADERS["MCP-Protocol-Version"], "capabilities": {},
                                            "clientInfo": {"name": "x", "version": "1"}})
    told = answer["result"]["instructions"]
    check(len(told) < 700, told)
    for word in ("run_code", "conversationId", "/data", "install_package", "get_run"):
        contains(told, word)

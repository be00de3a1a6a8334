"""Results as a model reads them, at /mcp: one text and pictures. The other modules call /mcp/api, where they are objects."""
import json
import re

import runs
import sites
from harness import check, contains, equal, test, wait_until
from mcp import API, META_CAPABILITIES, META_VERSION, MODERN, timed
from runs import TASKS
from stdio import Stdio
from streams import Stream, modern_headers, modern_message

MODELS = "/mcp"
KEEP = 16 * 1024  # SANDBOX_ANSWER_MAX
PLOT = "from PIL import Image\nprint('hello chart\\nsaved')\nImage.new('RGB', (99, 99), 'red').save('chart.png')\n"


def call(client, tool, **arguments):
    """The result of a call at the place for models; it has that form."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = client.post(message, {"MCP-Protocol-Version": "2025-11-25"}, MODELS).json()
    check("result" in answer, f"{tool}: {answer}")
    in_form(answer["result"])
    return answer["result"]


def in_form(result):
    """One text, pictures behind it, and nothing else."""
    kinds = [block["type"] for block in result["content"]]
    equal(kinds, ["text"] + ["image"] * (len(kinds) - 1), "blocks")
    check("structuredContent" not in result, "structuredContent")


def text(client, tool, **arguments):
    return call(client, tool, **arguments)["content"][0]["text"]


def run(client, code, language="python", **arguments):
    return text(client, "run_code", conversationId=client.conversation, language=language, code=code, **timed(arguments))


def timeless(said):
    """Times, ids and links are those of the run."""
    said = re.sub(r"https://localhost:\d+/files/\S+/", "URL/", said)
    return re.sub(r"\b\d+(?:\.\d)? s\b", "N s", re.sub(r"\b[0-9a-f]{24}\b", "ID", said))


@test("/mcp has one text and the picture, no object, no links besides; its lists have no output schemas; /mcp/api has them all", timeout=180, core=True)
def _():
    client = sites.client()
    whole = call(client, "run_code", conversationId=client.conversation, language="python", code=PLOT)
    equal([block["type"] for block in whole["content"]], ["text", "image"])
    said = timeless(whole["content"][0]["text"])
    check(re.fullmatch(r"hello chart\nsaved\n\nexit code 0, N s\nchart\.png: URL/chart\.png", said), said)
    url = re.search(r"https://\S+", whole["content"][0]["text"]).group()
    check(client.download(url).body.startswith(b"\x89PNG"), "the link")
    for path, has in ((MODELS, False), (API, True)):
        tools = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"MCP-Protocol-Version": "2025-11-25"}, path).json()
        equal(any("outputSchema" in tool for tool in tools["result"]["tools"]), has, path)
    structured = client.run_whole(PLOT)
    equal({block["type"] for block in structured["content"]}, {"text", "image", "resource_link"})
    check("hello" not in json.dumps(structured["content"][0]), "the output twice")
    equal(structured["structuredContent"]["output"], "hello chart\nsaved\n")


@test("a run in words: how it ended, and what to do next", timeout=180, core=True)
def _():
    client = sites.client()
    for code, language, wanted in (
            ("print('x' * 3)", "python", "xxx\n\nexit code 0, N s"),
            ("exit 3", "bash", "exit code 3, N s"),
            ("echo oops >&2; exit 3", "bash", "oops\n\nexit code 3, N s"),
            ("printf end; kill -9 $$", "bash", "end\n\nended by signal 9, N s"),
            ("2 + 2", "python", "4\n\nexit code 0, N s"),
            ("x = 2 + 2", "python", "exit code 0, N s\nprinted nothing: print what you want to see"),
            ("echo x > made", "bash", "exit code 0, N s\nmade: URL/made"),
            ("rm made; mkdir d; printf abc > d/e", "bash", "exit code 0, N s\nd/e: URL/e\nmade (deleted)"),
            ("printf abcd > d/e", "bash", "exit code 0, N s\nd/e (changed): URL/e")):
        equal(timeless(run(client, code, language)).replace("URL/d/", "URL/"), wanted, code)
    contains(run(client, "import polars"), "\npolars is not installed: install_package")
    contains(run(client, "import os.nothing"), "exit code 1")
    contains(run(client, "import isOdd from 'is-odd'; console.log(isOdd(3))", "typescript"), "\nis-odd is not installed: install_package")
    said = timeless(run(client, "echo begun; sleep 250", "bash", timeout=2))
    equal(said, "begun\n\nstopped after N s: timeoutMs allows up to 300000")
    said = timeless(run(client, "print('start', flush=True)\na = []\nwhile True: a.append(bytearray(1 << 20))"))
    check(re.fullmatch(r"start\n\nended: out of memory, N s\n\d+ [GM]B are allowed: .*", said), said)


@test("a run that goes on says how to go on; get_run and cancel_run answer in the same words; a task's result, too", timeout=180, core=True)
def _():
    client = sites.client()
    said = run(client, "echo begun; sleep 250", "bash", waitMs=1, timeout=280)
    run_id = re.search(r"still running.*\nget_run with runId ([0-9a-f]{24})\b", said).group(1)
    wait_until(lambda: re.fullmatch(rf"begun\n\nstill running, \d+(\.\d)? s\nget_run with runId {run_id} and sinceByte 6 brings the rest; "
                                    r"cancel_run ends it", text(client, "get_run", runId=run_id, waitMs=500)), 60, "the output so far")
    contains(text(client, "cancel_run", runId=run_id), "begun\n\ncancelled, ")
    said = text(client, "get_run", runId=run_id, detail="full")
    contains(said, f"runId {run_id}")
    contains(run(client, "print(1)", detail="full"), ", memory ")
    contains(text(client, "get_run", runId="0" * 24), "no such run")
    capabilities = {"extensions": {TASKS: {}}}
    message = modern_message("tools/call", {"name": "run_code", "arguments": runs.arguments_of(client, runs.UNTIL_GO + "echo slow", background=True)},
                             capabilities=capabilities)
    task = client.post(message, modern_headers("tools/call", "run_code"), MODELS).messages()[-1]["result"]["taskId"]
    runs.go(client)
    for path, check_it in ((MODELS, in_form), (API, lambda result: equal(result["structuredContent"]["output"], "slow\n"))):
        def over(path=path):
            message = modern_message("tasks/get", {"taskId": task}, capabilities=capabilities)
            state = client.post(message, modern_headers("tasks/get", task), path).messages()[-1]["result"]
            return state if state["status"] == "completed" else None
        check_it(wait_until(over, 30, "the task ends", pause=0.3)["result"])


@test("a listener is told of a task's result in the form of its place", timeout=90)
def _():
    client = sites.client()
    capabilities = {"extensions": {TASKS: {}}}
    message = modern_message("tools/call", {"name": "run_code", "arguments": runs.arguments_of(client, runs.UNTIL_GO + "echo slow", background=True)},
                             capabilities=capabilities)
    task = client.post(message, modern_headers("tools/call", "run_code"), MODELS).messages()[-1]["result"]["taskId"]
    listen = modern_message("subscriptions/listen", {"notifications": {"taskIds": [task]}}, capabilities=capabilities)
    streams = [Stream(client, listen, modern_headers("subscriptions/listen"), revision=MODERN, path=path).begin() for path in (MODELS, API)]
    for stream in streams:
        stream.expect("notifications/subscriptions/acknowledged")
    runs.go(client)
    told = []
    for stream in streams:
        state = stream.wait_for("notifications/tasks", 60)
        equal(state["params"]["status"], "completed")
        told.append(state["params"]["result"])
    in_form(told[0])
    equal(timeless(told[0]["content"][0]["text"]), f"slow\n\nexit code 0, N s\nconversationId: {client.conversation}")
    equal(told[1]["structuredContent"]["output"], "slow\n")


@test("long output: head and tail, 16 KiB in all, and get_run brings every byte; detail: full has what is kept", timeout=180, core=True)
def _():
    client = sites.client()
    code = "print('\\n'.join(f'{i:09}' for i in range(100000)))"  # 1 MB
    said = run(client, code)
    check(KEEP * 0.9 < len(said) < KEEP + 400, f"{len(said)} characters")
    check(said.startswith("000000000\n"), "head")
    contains(said, "\n000099999\n\nexit code 0, ")
    left = int(re.search(r"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n", said).group(1))
    check(left > 100000, f"{left} left out")  # of the 128 KiB that are kept of it
    run_id, since = re.search(r"\nmore output: get_run with runId (\w+) and sinceByte (\d+)$", said).groups()
    whole = "".join(f"{i:09}\n" for i in range(100000))
    check(said.startswith(whole[:int(since)] + "[... "), "where the head ends")
    for _ in range(3):
        piece = text(client, "get_run", runId=run_id, sinceByte=int(since))
        more = re.search(r"\nmore output: get_run with runId \w+ and sinceByte (\d+)$", piece).group(1)
        equal(int(more), int(since) + KEEP)
        check(re.match(re.escape(whole[int(since):int(more)]) + "\n{1,2}exit code 0, ", piece), f"the piece from {since}: {piece[-300:]}")
        since = more
    last = text(client, "get_run", runId=run_id, sinceByte=len(whole) - 20)
    check(last.startswith(whole[-20:] + "\nexit code 0, ") and "more output" not in last, last)
    full = run(client, code, detail="full")
    check(100000 < len(full) < 140000, f"{len(full)} characters in full")
    short = run(client, "for i in range(800): print(f'{i:09}')")  # 8 KB
    check(len(short) < 8000 * 1.1, f"{len(short)} characters for 8,000")


@test("output that is no UTF-8, has NULs or no line end is cut at whole characters, and told once")
def _():
    client = sites.client()
    for code in ("import sys\nfor i in range(200): sys.stdout.buffer.write(bytes(range(256)) + b'%d' % i)", "print('\\u00fc\\u20ac\\U0001f600' * 9000, end='')",
                 "print('x\\0' * 20000)"):
        said = run(client, code)
        check(len(said.encode()) < 3 * KEEP + 500, f"{len(said.encode())} bytes")
        contains(said, "bytes left out ...]\n")
        contains(said, "exit code 0, ")


@test("300 new files are the ten that matter and a count; detail: full names those that the run listed")
def _():
    client = sites.client()
    code = "mkdir deep; for i in $(seq 290); do echo x >deep/f$i; done; for i in 1 2 3; do echo $i >top$i; done; echo ok"
    said = run(client, code, "bash")
    equal(re.findall(r"^top\d", said, re.M), ["top1", "top2", "top3"])
    equal(len(re.findall(r"^(?:top|deep/f)\d+$", said, re.M)), 10)
    equal(len(re.findall(r"https://", said)), 1)
    check(said.endswith("\n283 more files: list_files"), said[-200:])
    full = run(client, "touch deep/*", "bash", detail="full")
    check(len(re.findall(r" \(changed\) \(2 bytes\)$", full, re.M)) >= 200, "full")
    listed = text(client, "list_files", conversationId=client.conversation, recursive=True)
    check(listed.startswith("deep/f1 (2 bytes)\ndeep/f2 (2 bytes)\n"), listed[:100])
    cursor = re.search(r"\n200 entries; more with cursor (\S+)\nlinks: https://\S+ \+ name$", listed).group(1)
    rest = text(client, "list_files", conversationId=client.conversation, recursive=True, cursor=cursor)
    check(re.search(r"\n\n94 entries\nlinks: https://\S+ \+ name$", rest), rest[-300:])
    contains(text(client, "list_files", conversationId=client.conversation, glob="top1", detail="full"), ": https://")


@test("a page of long names is as long as an answer may be, and its cursor goes on behind it")
def _():
    client = sites.client()
    run(client, "for i in $(seq 150); do echo x >$(printf '%0200d' $i); done", "bash")
    names, cursor, pages = [], None, 0
    while cursor is not None or pages == 0:
        page = text(client, "list_files", conversationId=client.conversation, **({"cursor": cursor} if cursor else {}))
        check(len(page) < KEEP + 4000, f"{len(page)} characters")
        names += re.findall(r"^(\d{200}) \(", page, re.M)
        more = re.search(r"more with cursor (\S+)$", page, re.M)
        cursor = more and more.group(1)
        pages += 1
    equal((names, pages), ([f"{i:0200}" for i in range(1, 151)], 2))


@test("files in words: written, read in pieces, looked at, deleted", timeout=180, core=True)
def _():
    client = sites.client()
    who = {"conversationId": client.conversation}
    said = text(client, "write_file", filename="notes/a.txt", text="grüße\n", **who)
    check(re.fullmatch(r"notes/a\.txt \(8 bytes\): https://\S+/notes/a\.txt", said), said)
    said = text(client, "read_file", filename="notes/a.txt", **who)
    check(re.fullmatch(r"grüße\n\nnotes/a\.txt \(8 bytes\)\nlink: https://\S+/notes/a\.txt", said), said)
    text(client, "write_file", filename="long", text="0123456789\n" * 10000, **who)
    said = text(client, "read_file", filename="long", **who)
    check(re.search(r"\nlong \(110 kB\): bytes 0 to 16384; the next with offset 16384\nlink: \S+/long$", said), said[-300:])
    equal(len(said.split("\n\nlong (110 kB)")[0]), KEEP)
    contains(text(client, "read_file", filename="long", offset=100000, length=10, **who), ": bytes 100000 to 100010; the next with offset 100010")
    run(client, PLOT)
    whole = call(client, "read_file", filename="chart.png", **who)
    equal(([block["type"] for block in whole["content"]]), ["text", "image"])
    contains(whole["content"][0]["text"], "chart.png (")
    contains(text(client, "delete_file", filename="long", **who), '"deleted":1')
    contains(text(client, "delete_conversation", **who), "The conversation is deleted: ")
    equal(text(client, "list_files", **who), "no files")


@test("commands of a sandbox in words; what has no words of its own is JSON, once", core=True)
def _():
    client = sites.client()
    made = json.loads(text(client, "create_sandbox", conversationId=client.conversation, language="bash"))
    said = text(client, "exec", sandboxId=made["sandboxId"], command="echo hi; echo no >&2; echo x >f; exit 4")
    check(re.fullmatch(r"hi\nno\n\nexit code 4, \d\.\d s\nf: https://\S+/f", said), said)
    said = timeless(text(client, "exec", sandboxId=made["sandboxId"], commands=["echo one", "false", "echo never"]))
    equal(said, "$ echo one\none\nexit code 0, N s\n$ false\n\nexit code 1, N s")
    said = text(client, "exec", sandboxId=made["sandboxId"], command="seq 1 20000")
    check(len(said) < KEEP + 300, f"{len(said)} characters")
    contains(said, "bytes left out ...]\n")
    rest = re.search(r"\nmore output: get_run with runId ([0-9a-f]{24}) and sinceByte (\d+)$", said)
    check(rest, said[-200:])
    contains(text(client, "get_run", runId=rest.group(1), sinceByte=int(rest.group(2))), "\n3000\n")
    said = text(client, "exec", sandboxId=made["sandboxId"], command="echo begun; sleep 250", waitMs=500)
    run_id = re.search(r"^begun\n\nstill running.*\nget_run with runId ([0-9a-f]{24}) and sinceByte 6 brings the rest", said).group(1)
    contains(text(client, "cancel_run", runId=run_id), "begun\n\ncancelled, ")
    equal(timeless(text(client, "exec", sandboxId=made["sandboxId"], command="true")), "exit code 0, N s")
    status = text(client, "get_sandbox_status", conversationId=made["conversationId"])
    equal(status, f"{made['sandboxId']}: running, bash, {made['conversationId']}")
    check(len(status) < 100, "20 of them have more than 2,000 characters")
    equal(json.loads(text(client, "close_sandbox", sandboxId=made["sandboxId"]))["status"], "closed")


@test("every revision reads the same text at /mcp; a mistake is named in one text", timeout=180)
def _():
    client = sites.client()
    arguments = {"name": "run_code", "arguments": runs.arguments_of(client, "echo hi")}
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}, {"MCP-Protocol-Version": revision}, MODELS)
        in_form(answer.json()["result"])
        equal(timeless(answer.json()["result"]["content"][0]["text"]), "hi\n\nexit code 0, N s", revision)
    modern = {"_meta": {META_VERSION: MODERN, META_CAPABILITIES: {}}}
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments | modern},
                         modern_headers("tools/call", "run_code"), MODELS).messages()[-1]
    in_form(answer["result"])
    equal(timeless(answer["result"]["content"][0]["text"]), "hi\n\nexit code 0, N s", MODERN)
    refused = call(client, "run_code", conversationId="x", language="bash", cod="x")
    equal(refused["isError"], True)
    contains(refused["content"][0]["text"], "unknown argument 'cod'; did you mean 'code'?")


@test("over stdio the setting ANSWERS decides")
def _():
    site = sites.shared()
    for answers in ("text", "structured"):
        client = Stdio(site.config, "2025-11-25", answers)
        client.result("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        result = client.result("tools/call", {"name": "run_code", "arguments": {"conversationId": "s", "language": "bash", "code": "echo hi"}}, 60)
        if answers == "text":
            in_form(result)
            equal(timeless(result["content"][0]["text"]), "hi\n\nexit code 0, N s")
        else:
            equal(result["structuredContent"]["output"], "hi\n")

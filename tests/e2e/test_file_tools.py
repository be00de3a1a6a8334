"""list_files, read_file, write_file, move_file, delete_file through the whole stack (H-01, H-23, H-24, H-28, H-32, H-36, H-42, H-69)"""
import base64
import hashlib
import os
import urllib.parse

import procs
import sites
from harness import IS_ROOT, check, contains, equal, test, wait_until
from mcp import ToolError
from streams import open_modern

LATEST = {"MCP-Protocol-Version": "2025-11-25"}
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
ODD_NAMES = ("with space", " leading and trailing ", "quo\"te's", "new\nline", "cr\r\nSet-Cookie: x=1", "tab\there", "-rf", "--", "\u00fcber \u8868 \U0001f600",
             "\u202eright to left", "$(touch pwned)`touch pwned`;touch pwned", "a|b&c>d<e*f?g[h]i{j}k~l!m#n%o", "back\\slash", "..hidden", "...",
             "\x1b[31mred", "x" * 255, "folder/with -dash/\n/deep")


def call(client, tool, **arguments):
    return client.structured(tool, {"conversationId": client.conversation} | arguments)


def refused(client, tool, **arguments):
    return client.tool_error(tool, {"conversationId": client.conversation} | arguments)


def write(client, name, text, **arguments):
    return call(client, "write_file", filename=name, text=text, **arguments)["file"]


def read(client, name, **arguments):
    return call(client, "read_file", filename=name, **arguments)


def listed(client, **arguments):
    """Every row of every page."""
    rows, cursor = [], {}
    for _ in range(100000):
        page = call(client, "list_files", **arguments, **cursor)
        rows += page["files"]
        if "nextCursor" not in page:
            return rows
        cursor = {"cursor": page["nextCursor"]}
    raise AssertionError("the pages do not end")


def names(client, **arguments):
    return [row["name"] for row in listed(client, **arguments)]


def _plain():
    """A server whose memory can be measured."""
    return sites.with_settings(binary=sites.plain_binary(), SANDBOX_FSIZE="1024g")


@test("a file is written, listed, read, moved and deleted; programs and URLs see each step", core=True)
def _():
    client = sites.client()
    equal(call(client, "list_files"), {"files": []}, "before there is a sandbox")
    file = write(client, "notes/a.md", "# gr\u00fc\u00df\n")
    equal((file["name"], file["size"]), ("notes/a.md", 9))
    contains(file["mimeType"], "text/")
    equal(client.run("cat notes/a.md", "bash")["stdout"], "# gr\u00fc\u00df\n")
    rows = listed(client, recursive=True)
    equal([(row["name"], row["type"], row.get("size")) for row in rows], [("notes", "folder", None), ("notes/a.md", "file", 9)])
    equal(client.download(rows[1]["url"]).body.decode(), "# gr\u00fc\u00df\n")
    got = read(client, "notes/a.md")
    equal((got["content"], got["encoding"], got["size"], got.get("nextOffset")), ("# gr\u00fc\u00df\n", "text", 9, None))
    contains(refused(client, "write_file", filename="notes/a.md", text="other"), "overwrite")
    write(client, "notes/a.md", "other", overwrite=True)
    moved = call(client, "move_file", **{"from": "notes", "to": "archive/2026/notes"})["file"]
    equal((moved["name"], moved["type"]), ("archive/2026/notes", "folder"))
    equal(read(client, "archive/2026/notes/a.md")["content"], "other")
    equal(client.download(rows[1]["url"]).status, 404)
    contains(refused(client, "delete_file", filename="archive"), "recursive")
    equal(call(client, "delete_file", filename="archive", recursive=True), {"deleted": 4})
    equal(client.run("ls -A", "bash")["stdout"], "")
    contains(refused(client, "delete_file", filename="archive", recursive=True), "no such")


@test("H-24, H-36: names of every kind work exactly, through tools, programs, URLs and resources")
def _():
    client = sites.client()
    base = ""
    for number, name in enumerate(ODD_NAMES):
        file = write(client, name, f"content {number}")
        equal(file["name"], name)
        answer = client.download(file["url"])
        equal((answer.status, answer.body), (200, f"content {number}".encode()), repr(name))
        check(answer.headers.get("Set-Cookie") is None, "a forged header")
        uri = f"sandbox://{client.conversation}/{urllib.parse.quote(name, safe='/-._~')}"
        equal(client.result("resources/read", {"uri": uri}, LATEST)["contents"][0]["uri"], uri)
        base = file["url"]
    code = "import os\nfor w, _, n in os.walk('.'):\n    for f in n: print(ascii(os.path.join(w, f)[2:]))"
    equal(sorted(client.run(code)["stdout"].splitlines()), sorted(ascii(name) for name in ODD_NAMES))
    check("pwned" not in client.run("ls -A", "bash")["stdout"].split("\n"), "a name was run")
    rows = [row["name"] for row in listed(client, recursive=True, includeHidden=True, limit=3) if row["type"] == "file"]
    equal(sorted(rows), sorted(ODD_NAMES))
    for number, name in enumerate(ODD_NAMES):
        equal(read(client, name)["content"], f"content {number}", repr(name))
        call(client, "move_file", **{"from": name, "to": "moved/" + name})
        equal(read(client, "moved/" + name)["content"], f"content {number}", repr(name))
        equal(call(client, "delete_file", filename="moved/" + name), {"deleted": 1}, repr(name))
    equal(client.download(base).status, 404)


@test("H-24: names that are no UTF-8 are listed repaired, with a URL of their very bytes; their folder can be deleted")
def _():
    client = sites.client()
    client.run(r"mkdir odd; printf one >$'odd/\xff\xfe'; printf two >$'odd/a\n\xe4'", "bash")
    rows = listed(client, folder="odd")
    equal([row["name"] for row in rows], ["odd/a\n\ufffd", "odd/\ufffd\ufffd"])
    equal([client.download(row["url"]).body for row in rows], [b"two", b"one"])
    contains(refused(client, "read_file", filename=rows[0]["name"]), "no such")
    equal(call(client, "delete_file", filename="odd", recursive=True), {"deleted": 3})


@test("a file has the names that programs call it: a.txt, ./a.txt and /data/a.txt are one in every tool")
def _():
    client = sites.client()
    write(client, "/data/one.txt", "1")
    equal([call(client, "read_file", filename=name)["content"] for name in ("one.txt", "./one.txt", "/data/one.txt")], ["1", "1", "1"])
    call(client, "move_file", **{"from": "/data/one.txt", "to": "./below/two.txt"})
    for folder in ("below", "./below", "/data/below"):
        equal([row["name"] for row in call(client, "list_files", folder=folder)["files"]], ["below/two.txt"])
    equal([row["name"] for row in call(client, "list_files", folder="/data")["files"]], ["below"])
    contains(refused(client, "read_file", filename="/tmp/two.txt"), "filename must be a path below /data")
    call(client, "delete_file", filename="/data/below/two.txt")


@test("H-01: names that leave the sandbox or are none are refused by every tool; nothing is written, moved or gone", core=True)
def _():
    client = sites.client()
    root = sites.shared().root
    write(client, "witness", "x")
    before = sorted(os.listdir(root))
    for name in ("../../../../etc/cron.d/x", "../x", "a/../../b", "a/../witness", "/etc/passwd", "/data/../witness", "/", ".", "..", "", "a\0b",
                 "witness/", "a/.", "x" * 256, "a/" * 600 + "b", "%2e%2e%2f", "a%2Fb", "a/" * 16 + "b"):
        for tool, arguments, field in (("read_file", {"filename": name}, "filename"),
                                       ("write_file", {"filename": name, "text": "evil", "overwrite": True}, "filename"),
                                       ("delete_file", {"filename": name, "recursive": True}, "filename"),
                                       ("move_file", {"from": name, "to": "ok"}, "from"),
                                       ("move_file", {"from": "witness", "to": name, "overwrite": True}, "to"),
                                       ("list_files", {"folder": name}, "folder")):
            if tool == "list_files" and name in ("", ".", "/"):
                continue  # the sandbox itself
            contains(refused(client, tool, **arguments), field, f"{tool} {name[:40]!r}")
    equal(sorted(os.listdir(root)), before, "SANDBOX_ROOT")
    check(not os.path.exists("/etc/cron.d/x"), "written outside")
    equal(client.run("ls -A", "bash")["stdout"].split(), ["witness"])


@test("H-02, H-03, H-28: links, FIFOs, devices and folders: a defined answer from every tool, never what lies behind", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    secret = f"{site.folder}/file-tools-secret"
    with open(secret, "w", encoding="ascii") as file:
        file.write("untouched")
    os.chmod(secret, 0o666)
    client.run(f"ln -s {secret} link; ln -s {site.folder} dir; ln -s /proc/self/environ environ; ln -s / root; ln -s loop loop; "
               "ln -s nowhere dangling; ln -s ../../etc up; mkfifo fifo; ln -s /dev/zero zero; mkdir folder; echo own >folder/own; "
               "ln folder/own hard", "bash")
    client.run("import os\nos.mknod('socket', 0o140644)")
    kinds = {row["name"]: row["type"] for row in listed(client, recursive=True)}
    equal({name for name, kind in kinds.items() if kind == "link"},
          {"link", "dir", "environ", "root", "loop", "dangling", "up", "zero"})
    equal((kinds["fifo"], kinds["socket"], kinds["folder"], kinds["folder/own"]), ("other", "other", "folder", "file"))
    equal(len(kinds), 13, "nothing behind the links")
    for name in ("link", "dir/file-tools-secret", "environ", "root/etc/passwd", "loop", "dangling", "up/passwd", "fifo", "zero", "socket",
                 "folder", "folder/own/x"):
        contains(refused(client, "read_file", filename=name), "no such", name)
    equal(read(client, "hard")["content"], "own\n")
    for name in ("dir", "root", "up", "fifo", "link", "folder/own", "loop"):
        contains(refused(client, "list_files", folder=name), "no such", name)
    for name in ("dir/new", "root/tmp/file-tools-planted", "up/x", "fifo/x", "loop/x", "folder/own/x"):
        check(refused(client, "write_file", filename=name, text="evil", overwrite=True), name)
        check(refused(client, "move_file", **{"from": "hard", "to": name, "overwrite": True}), name)
        contains(refused(client, "delete_file", filename=name, recursive=True), "no such", name)
    write(client, "link", "mine", overwrite=True)
    for name in ("dir", "environ", "root", "loop", "dangling", "up", "fifo", "zero", "socket"):
        call(client, "move_file", **{"from": name, "to": "gone"})
        equal(call(client, "delete_file", filename="gone", recursive=True), {"deleted": 1}, name)
    with open(secret, encoding="ascii") as file:
        equal(file.read(), "untouched")
    equal(client.run("cat link; ls -A", "bash")["stdout"], "minefolder\nhard\nlink\n")


@test("H-23: a sparse file of a terabyte is listed and read in pieces, and costs the worker nothing", timeout=300)
def _():
    site = _plain()
    client = sites.new_conversation(site.client())
    client.run("truncate -s 1T huge huge.png; printf end | dd of=huge bs=1 seek=$((2 ** 40 - 3)) conv=notrunc 2>/dev/null", "bash")
    size = 1 << 40
    equal({row["name"]: row["size"] for row in listed(client)}, {"huge": size, "huge.png": size})
    before = max(map(procs.private_memory, site.workers()))
    last = read(client, "huge", offset=size - 5, length=1000)
    equal((base64.b64decode(last["content"]), last["length"], last.get("nextOffset")), (b"\0\0end", 5, None))
    for name in ("huge", "huge.png"):
        first = read(client, name)
        equal((first["encoding"], first["length"], first["nextOffset"]), ("base64", 65536, 65536), name)
    equal(len(base64.b64decode(read(client, "huge", offset=1 << 39, length=1 << 20)["content"])), 1 << 20)
    contains(refused(client, "read_file", filename="huge", offset=size + 1), str(size))
    after = max(map(procs.private_memory, site.workers()))
    check(after < before + (16 << 20), f"a worker grew from {before} to {after} bytes")


@test("a picture is an image, and has the same bytes by every way", timeout=60, core=True)
def _():
    client = sites.client()
    call(client, "write_file", filename="p.png", base64=base64.b64encode(PNG).decode())
    whole = client.tool("read_file", {"conversationId": client.conversation, "filename": "p.png"})
    equal((whole["structuredContent"]["encoding"], whole["structuredContent"]["size"]), ("image", len(PNG)))
    image = [block for block in whole["content"] if block["type"] == "image"]
    equal([block["mimeType"] for block in image], ["image/png"])
    ways = {"image": base64.b64decode(image[0]["data"]), "url": client.download(listed(client)[0]["url"]).body,
            "base64": base64.b64decode(read(client, "p.png", encoding="base64")["content"]),
            "resource": base64.b64decode(client.result("resources/read", {"uri": f"sandbox://{client.conversation}/p.png"}, LATEST)
                                         ["contents"][0]["blob"])}
    equal({hashlib.sha256(data).hexdigest() for data in ways.values()}, {hashlib.sha256(PNG).hexdigest()}, str(ways)[:200])


@test("pieces of a text never cut a character, and together are the file")
def _():
    client = sites.client()
    text = "a\u00e4\u20ac\U0001f600\n" * 500
    write(client, "t", text)
    got, offset = "", 0
    while offset is not None:
        piece = read(client, "t", offset=offset, length=101)
        equal(piece["encoding"], "text")
        got, offset = got + piece["content"], piece.get("nextOffset")
    equal(got, text)


@test("globs: of the last part, of the whole path, across folders; nonsense is named")
def _():
    client = sites.client()
    client.run("mkdir -p a/b c; touch x.csv a/y.csv a/b/z.csv a/b/z.txt c/.csv '*.csv' 'a/[1]'", "bash")
    for glob, want in (("*.csv", ["*.csv", "a/b/z.csv", "a/y.csv", "c/.csv", "x.csv"]), ("a/*.csv", ["a/y.csv"]),
                       ("a/**/*.csv", ["a/b/z.csv", "a/y.csv"]), ("**/z.*", ["a/b/z.csv", "a/b/z.txt"]), ("\\*.csv", ["*.csv"]),
                       ("\\[1]", ["a/[1]"]), ("[!x]*.csv", ["*.csv", "a/b/z.csv", "a/y.csv"]), ("?", ["a", "a/b", "c"])):
        for limit in (1, 1000):
            equal(names(client, glob=glob, recursive=True, limit=limit), want, glob)
    equal(names(client, folder="a", glob="b/*"), [])
    for glob in ("[", "[z-a]", "a\\", "*" * 256):
        contains(refused(client, "list_files", glob=glob), "glob", repr(glob))
    write(client, "a" * 200, "")
    equal(names(client, glob="*a" * 126 + "*b"), [], "and at once")


@test("100,000 files are paged in order, page by page; a file that comes or goes moves no other", timeout=300)
def _():
    site = _plain()
    client = sites.new_conversation(site.client())
    result = client.run("import os\nos.mkdir('many')\nfor i in range(100000): os.mknod(f'many/{i:06}')\nprint('made')", timeout=120)
    equal(result["stdout"], "made\n")
    before = max(map(procs.private_memory, site.workers()))
    first = call(client, "list_files", folder="many", limit=1000)
    client.run("rm many/000500; touch many/000500a many/050000a", "bash")
    rows, cursor = [row["name"] for row in first["files"]], first["nextCursor"]
    while cursor:
        page = call(client, "list_files", folder="many", limit=1000, cursor=cursor)
        rows += [row["name"] for row in page["files"]]
        cursor = page.get("nextCursor")
    equal(len(rows), 100001)
    equal(rows, sorted(rows), "the order")
    after = max(map(procs.private_memory, site.workers()))
    check(after < before + (16 << 20), f"a worker grew from {before} to {after} bytes")
    equal(call(client, "delete_file", filename="many", recursive=True), {"deleted": 100002})
    equal(names(client), [])


@test("a made-up cursor is refused, another place's cursor shows nothing else")
def _():
    client = sites.client()
    write(client, "a/secret", "x")
    write(client, "b", "x")
    for cursor in ("x", "AAAA", "Li4vLi4=", "L2V0Yw==", "YS8=", "\u00e9", "", "A" * 2048):
        if cursor:
            contains(refused(client, "list_files", cursor=cursor), "cursor", repr(cursor))
    equal(names(client, cursor=base64.b64encode(b"a/secret").decode()), ["b"])
    other = sites.client()
    write(other, "c", "x")
    equal([row["name"] for row in call(other, "list_files", cursor=base64.b64encode(b"b").decode())["files"]], ["c"])


@test("H-08, H-42: another tenant's conversation of the same name is an empty one; answers do not tell it from an unknown one", core=True)
def _():
    site = sites.shared()
    client = sites.client()
    write(client, "mine", "secret")
    token = "f" * 24 + "0123456789abcdef"
    site.set_token("trent", token)
    other = site.client().with_token(token)
    wait_until(lambda: other.request("ping").status == 200, 5, "nginx knows the new token")
    for conversation in (client.conversation, "never-used"):
        other.conversation = conversation
        equal(call(other, "list_files"), {"files": []})
        texts = {tool: refused(other, tool, **arguments) for tool, arguments in (
            ("read_file", {"filename": "mine"}), ("delete_file", {"filename": "mine"}),
            ("move_file", {"from": "mine", "to": "theirs"}), ("list_files", {"folder": "mine"}))}
        for text in texts.values():
            contains(text, "no such", conversation)
    equal(read(client, "mine")["content"], "secret")


@test("H-32: what tools write belongs to the sandbox's user and counts in its quota", core=True)
def _():
    site = sites.with_settings(SANDBOX_QUOTA="1m")
    client = sites.new_conversation(site.client())
    write(client, "a/b", "x")
    equal(client.run("stat -c %u:%a a a/b | sed s/$(id -u)/mine/", "bash")["stdout"], "mine:755\nmine:644\n")
    contains(refused(client, "write_file", filename="big", text="x" * 1100000), "SANDBOX_QUOTA")
    equal(names(client), ["a"])


@test("what the file tools change is told to who listens for it", core=True)
def _():
    client = sites.client()
    write(client, "f/a", "x")
    base = f"sandbox://{client.conversation}/"
    uris = [base + name for name in ("f/a", "g/a", "new")]
    stream = open_modern(client, "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, "L1").begin()
    stream.expect("notifications/subscriptions/acknowledged")

    def heard(step, *want):
        got = {stream.wait_for("notifications/resources/updated")["params"]["uri"] for _ in want}
        equal(got, set(want), step)
    call(client, "write_file", filename="new", text="")
    heard("write", base + "new")
    call(client, "move_file", **{"from": "f", "to": "g"})
    heard("move", base + "f/a", base + "g/a")
    call(client, "delete_file", filename="g", recursive=True)
    heard("delete", base + "g/a")
    stream.close()


def _containers():
    return {one["Id"] for one in sites.shared().all_containers()}


@test("H-41: file tools run nothing: no container is made, whatever the arguments")
def _():
    client, before = sites.client(), _containers()
    write(client, "$(id).py", "import os; os.mknod('ran')")
    names(client, glob="$(id)*")
    read(client, "$(id).py")
    call(client, "move_file", **{"from": "$(id).py", "to": "`id`"})
    call(client, "delete_file", filename="`id`")
    equal(_containers() - before, set())


@test("wrong arguments are named, and both or neither content")
def _():
    client = sites.client()
    for tool, arguments, says in (("write_file", {"filename": "a"}, "text"), ("write_file", {"filename": "a", "text": True}, "text"),
                                  ("write_file", {"filename": "a", "text": "b", "base64": "QQ=="}, "either"),
                                  ("write_file", {"filename": "a", "base64": "a!b"}, "base64"),
                                  ("read_file", {"filename": "a", "offset": -1}, "offset"),
                                  ("read_file", {"filename": "a", "length": 1.5}, "length"),
                                  ("read_file", {"filename": "a", "encoding": "utf-16"}, "encoding"),
                                  ("list_files", {"limit": 0}, "limit"), ("list_files", {"limit": -1}, "limit"),
                                  ("list_files", {"recursive": "maybe"}, "recursive"), ("delete_file", {}, "filename"),
                                  ("move_file", {"from": "a"}, "to"), ("move_file", {"from": "a", "too": "b"}, "did you mean 'to'")):
        contains(refused(client, tool, **arguments), says, f"{tool} {arguments}")
    if IS_ROOT:
        client.run("mkdir locked; touch locked/f; chmod 000 locked", "bash")
        equal(call(client, "delete_file", filename="locked", recursive=True), {"deleted": 2})
    try:
        write(client, "a/b/c", "x" * (10 * 1024 * 1024 + 1))
    except ToolError as problem:
        contains(problem.text, "10485760")
    equal(names(client), [])

"""upload_file: names, sizes, what programs planted before (H-01, H-02, H-32)."""
import base64
import os
import threading

import sites
from harness import IS_ROOT, check, contains, equal, test
from mcp import ToolError


def _error(client, name, content=b"x", conversation=None):
    return client.tool_error("upload_file", {"conversationId": conversation or client.conversation, "filename": name,
                                             "content": base64.b64encode(content).decode()})


@test("an uploaded file is there for the program and behind its URL", core=True)
def _():
    client = sites.client()
    done = client.upload("table.csv", b"a,b\n1,2\n")
    equal((done["success"], done["file"]["name"], done["file"]["size"]), (True, "table.csv", 8))
    contains(done["file"]["mimeType"], "csv")
    equal(client.download(done["file"]["url"]).body, b"a,b\n1,2\n")
    equal(client.run("print(open('table.csv').read())")["stdout"], "a,b\n1,2\n\n")


@test("empty content is a valid empty file; sub-folders are made; uploading again replaces")
def _():
    client = sites.client()
    client.upload("empty", b"")
    client.upload("a/b/c.txt", b"one")
    client.upload("a/b/c.txt", b"two!")
    out = client.run("stat -c '%n %s %u' empty a a/b a/b/c.txt; id -u", "bash")["stdout"].split("\n")
    uid = out[4]
    check(sites.is_sandbox_user(uid), uid)
    equal(out[0], f"empty 0 {uid}")
    equal(out[3], f"a/b/c.txt 4 {uid}")
    equal({line.split()[-1] for line in out if line}, {uid}, "owner (H-32)")
    equal(client.run("rm -r a empty && mkdir a && echo x > a/new", "bash")["status"], "ok")


@test("every byte survives, and names in any script")
def _():
    client = sites.client()
    content = bytes(range(256)) * 100
    for name in ("bytes.bin", "\u00fcber \u8868 \U0001f600.txt", "-rf", "a'b\"c.txt", "new\nline.txt", "#?%41&.txt", "..hidden", "x" * 200):
        url = client.upload(name, content)["file"]["url"]
        equal(client.download(url).body, content, name)


@test("H-01: names that leave the sandbox or are no names are refused, and nothing is written", core=True)
def _():
    client = sites.client()
    root = sites.shared().root
    client.upload("witness", b"")
    before = _tree(root)
    for name in ("../../../../etc/cron.d/x", "../x", "a/../../b", "a/../b", "/etc/passwd", "/", ".", "..", "", "a\0b",
                 "a/", "a/.", "x" * 256, "a/" * 600 + "b", "%2e%2e%2f", "a%2Fb"):
        text = _error(client, name)
        contains(text, "filename", repr(name[:40]))
    equal(_tree(root), before, "files under SANDBOX_ROOT")
    check(not os.path.exists("/etc/cron.d/x"), "written outside")
    equal(client.run("ls -A", "bash")["stdout"].split(), ["witness"])


def _tree(root):
    return sorted(os.path.join(where, name) for where, folders, files in os.walk(root) for name in folders + files
                  if "/.runs" not in where)


@test("H-02: a link that a program planted is replaced or refused, its target unchanged", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    secret = f"{site.folder}/secret"
    with open(secret, "w", encoding="ascii") as file:
        file.write("untouched")
    os.chmod(secret, 0o666)
    client.run(f"ln -s {secret} out.txt; ln -s {site.folder} dir; ln -s / root; mkdir real; ln -s . real/loop; mkfifo pipe; "
               "mkdir folder", "bash")
    for name in ("out.txt", "dir/secret", "root/tmp/planted-by-test", "pipe", "folder"):
        try:
            client.upload(name, b"evil")
        except ToolError as refused:
            check(refused.text, "no reason")
        with open(secret, encoding="ascii") as file:
            equal(file.read(), "untouched", name)
    check(not os.path.exists("/tmp/planted-by-test"), "written through a link to /")
    equal(client.run("cat out.txt; test -L out.txt || echo replaced", "bash")["stdout"], "evilreplaced\n")


@test("H-02: links that are swapped while uploads run never let one out", timeout=90)
def _():
    client = sites.client()
    site = sites.shared()
    outside = f"{site.folder}/outside-of-uploads"
    os.makedirs(outside, exist_ok=True)
    os.chmod(outside, 0o777)
    code = f"""
import contextlib, os, shutil, time
def put_folder(): os.mkdir("d")
def put_link(): os.symlink({outside!r}, "d")
def take_away():
    os.rename("d", "old")
    os.unlink("old") if os.path.islink("old") else shutil.rmtree("old")
end = time.time() + 3
while time.time() < end:
    for step in (put_folder, take_away, put_link, take_away):
        with contextlib.suppress(OSError):
            step()
"""
    done = []
    runner = threading.Thread(target=lambda: done.append(client.fresh().run(code, conversation=client.conversation)))
    runner.start()
    tries = 0
    while runner.is_alive():
        try:
            client.upload("d/f", b"evil")
        except ToolError:
            pass
        tries += 1
    runner.join()
    check(tries > 10, f"only {tries} tries")
    equal(os.listdir(outside), [])


@test("content that is no base64, or over the limit, is refused and named")
def _():
    client = sites.client()
    for content in ("a", "ab=c", "a b c d e", "YQ===", "YR==", "\u00e9", "YQ==YQ==", "hello, you", 5, None):
        text = client.tool_error("upload_file", {"conversationId": client.conversation, "filename": "f", "content": content})
        contains(text, "content", repr(content))
    contains(_error(client, "big", b"x" * (10 * 1024 * 1024 + 1)), "10485760")
    client.upload("just", b"x" * (10 * 1024 * 1024))


@test("missing and wrong arguments are named", timeout=60)
def _():
    client = sites.client()
    good = {"conversationId": "c", "filename": "f", "content": ""}
    for name in good:
        if name != "conversationId":
            contains(client.tool_error("upload_file", {k: v for k, v in good.items() if k != name}), name)
        contains(client.tool_error("upload_file", good | {name: ["x"]}), name)
    for bad in ("a\n", "a\0", "\x1b[31m", "x" * 257):
        contains(client.tool_error("upload_file", good | {"conversationId": bad}), "conversationId", repr(bad)[:30])


@test("files cannot be written where the sandbox user may not: a clear error")
def _():
    client = sites.client()
    client.run("mkdir locked && chmod 0555 locked && touch f && mkdir gone", "bash")
    if not IS_ROOT:
        contains(_error(client, "locked/f"), "locked")
    equal(client.upload("f", b"new")["success"], True)
    contains(_error(client, "f/below"), "f")

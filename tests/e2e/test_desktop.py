"""sandcgi stdio, as desktop clients start it: both eras, told apart by what comes first."""
import base64
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import urllib.parse

import engine
import sites
from harness import TOP, check, contains, equal, new_folder, test, wait_until
from mcp import LEGACY, MODERN
from stdio import Stdio
from streams import modern_message


def _run(code, conversation, **arguments):
    return {"name": "run_code", "arguments": {"conversationId": conversation, "language": "bash", "code": code} | arguments}


def _start(revision=None, site=None):
    return Stdio((site or sites.shared()).config, revision)


def _conversation():
    return sites.client().conversation


@test("stdio speaks every legacy revision after initialize, and 2026-07-28 without", core=True)
def _():
    conversation = _conversation()
    for revision in LEGACY:
        one = _start()
        equal(one.initialize(revision)["protocolVersion"], revision)
        check(one.result("tools/list")["tools"], "no tools")
        equal(one.result("tools/call", _run("echo hi", conversation)).get("isError", False), False)
        equal(one.result("ping"), {})
    one = _start(MODERN)
    equal(one.result("server/discover")["supportedVersions"], [MODERN])
    check(one.result("tools/list")["tools"], "no tools")
    equal(one.result("tools/call", _run("echo hi", conversation))["structuredContent"]["stdout"], "hi\n")


@test("stdio answers server/discover without committing itself; after a modern request initialize is -32022")
def _():
    one = _start()
    one.send(modern_message("server/discover", id_="server-discover-probe-1"))
    equal(one.answer("server-discover-probe-1")["result"]["supportedVersions"], [MODERN])
    equal(one.initialize("2025-06-18")["protocolVersion"], "2025-06-18")
    other = _start(MODERN)
    other.result("tools/list")
    other.send({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}})
    equal(other.answer(9)["error"]["code"], -32022)


# ---- without settings ----

def new_home():
    """The environment of a user who has nothing of ours."""
    home = new_folder("home")
    return home, {"HOME": home, "DOCKER_HOST": engine.host(), "XDG_STATE_HOME": "", "SANDCGI_BROKER": f"{home}/no-server.sock"}


def _containers(state):
    return engine.of_instance(engine.instance(f"{state}/sandboxes"))


def _local_path(url):
    parts = urllib.parse.urlsplit(url)
    equal((parts.scheme, parts.netloc, parts.query), ("file", "", ""))
    return urllib.parse.unquote(parts.path)


@test("stdio without settings, in an empty home: they are made once with a secret, and files come back as local paths", timeout=90, core=True)
def _():
    home, environment = new_home()
    state = f"{home}/.local/state/sandcgi"
    clients = [Stdio(None, environment=environment, cwd="/") for _ in range(3)]
    for one in clients:
        one.initialize()
    settings = f"{state}/sandcgi.env"
    equal((stat.S_IMODE(os.stat(settings).st_mode), stat.S_IMODE(os.stat(state).st_mode)), (0o600, 0o700))
    equal(sorted(os.listdir(state)), ["sandboxes", "sandcgi.env"])
    with open(settings, encoding="utf-8") as file:
        secret = re.search("^FILE_SECRET=([0-9a-f]{64})$", file.read(), re.M).group(1)
    made = clients[0].result("tools/call", _run("echo made >'a b.txt'; printf %s \"$FILE_BASE_URL\"", "one"), 60)["structuredContent"]
    path = _local_path(made["files"][0]["url"])
    contains(path, f"{state}/sandboxes/")
    equal(os.path.basename(path), "a b.txt")
    with open(path, encoding="ascii") as file:
        equal(file.read(), "made\n")
    equal(_local_path(made["stdout"]), os.path.dirname(path))
    seen = clients[1].result("tools/call", _run("cat 'a b.txt'", "one"), 60)["structuredContent"]
    equal(seen["stdout"], "made\n", "another client of the same user")
    for one in clients:
        one.process.kill()
    wait_until(lambda: not _containers(state), 20, "no container is left when the clients are killed")
    again = Stdio(None, environment=environment | {"XDG_STATE_HOME": f"{home}/.local/state"})
    again.initialize()
    equal(again.result("tools/call", _run("cat 'a b.txt'", "one"), 60)["structuredContent"]["stdout"], "made\n")
    with open(settings, encoding="utf-8") as file:
        contains(file.read(), secret, "the settings of the first start")


def _archive():
    """base64 of a tar.gz with packed.txt."""
    out, content = io.BytesIO(), b"packed\n"
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("packed.txt")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return base64.b64encode(out.getvalue()).decode()


@test("stdio: the program is replaced while a client runs: that one goes on, the next has the new one, and both see the files; rm -r leaves nothing", timeout=90)
def _():
    home, environment = new_home()
    program = f"{new_folder('program')}/sandcgi"
    shutil.copy(sites.BINARY, program)
    before = Stdio(None, environment=environment, binary=program, options=("--tools", "all"))
    before.initialize()
    equal(before.result("tools/call", _run("echo kept >kept.txt", "one"), 60)["structuredContent"]["status"], "ok")
    lasts = before.call("tools/call", _run("until [ -e go ]; do sleep 0.05; done; cat kept.txt", "one"))
    shutil.copy(program, f"{program}.new")  # as "make install" does it: by another file
    os.rename(f"{program}.new", program)
    written = before.call("tools/call", {"name": "write_file", "arguments": {"conversationId": "one", "filename": "go", "text": ""}})
    answers = {}
    while {lasts, written} - set(answers):
        message = before.next(30)
        answers[message.get("id")] = message.get("result")
    equal(answers[lasts]["structuredContent"]["stdout"], "kept\n", "the program that was under way")
    after = Stdio(None, environment=environment, binary=program)
    after.initialize()
    equal(os.readlink(f"/proc/{before.process.pid}/exe"), f"{program} (deleted)")
    equal(after.result("tools/call", _run("cat kept.txt; echo new >new.txt", "one"), 60)["structuredContent"]["stdout"], "kept\n", "the new one")
    unpacked = before.result("tools/call", {"name": "upload_archive", "arguments": {"conversationId": "one", "content": _archive()}})
    check(not unpacked.get("isError"), f"the one before cannot start its reader of archives: {unpacked}")
    equal(before.result("tools/call", _run("cat new.txt packed.txt", "one"), 60)["structuredContent"]["stdout"], "new\npacked\n")
    for one in before, after:
        one.process.stdin.close()
        equal(one.process.wait(60), 0)
    state = f"{home}/.local/state/sandcgi"
    wait_until(lambda: not _containers(state), 20, "no container is left")
    shutil.rmtree(state)
    equal([name for _where, _folders, names in os.walk(home) for name in names], [])


@test("every configuration of fcgi/desktop.md starts a server that answers")
def _():
    _, environment = new_home()
    with open(f"{TOP}/fcgi/desktop.md", encoding="utf-8") as file:
        here, there = file.read().split("## A server on another machine")
    blocks = re.findall("```json\n(.*?)```", here, re.S)
    equal((len(blocks), there.count("```json")), (4, 1), "configurations")
    for block in blocks:
        (servers,) = json.loads(block).values()
        equal((servers["sandcgi"]["command"], servers["sandcgi"]["args"]), ("/usr/bin/sandcgi", ["stdio"]))
        one = Stdio(None, environment=environment | {"SANDBOX_WARM": ""} | servers["sandcgi"].get("env", {}))
        equal(one.initialize()["serverInfo"]["name"], "sandcgi")
        one.process.stdin.close()
        equal(one.process.wait(60), 0)


@test("stdio without settings says what is missing: no home, one that cannot be written")
def _():
    for environment, part in (({"HOME": ""}, "--config"), ({"HOME": "relative"}, "--config"), ({"HOME": "/proc/none"}, "/proc/none")):
        one = Stdio(None, environment={"XDG_STATE_HOME": ""} | environment, stderr=subprocess.PIPE)
        equal(one.process.wait(20), 1)
        said = one.process.stderr.read().decode()
        contains(said, part)
        equal(len(said.strip().splitlines()), 1, said)


@test("PUBLIC_BASE_URL=file: is for stdio; a server behind a web server does not start with it")
def _():
    site = sites.own({"PUBLIC_BASE_URL": "file:"}, start=False)
    site.start_server()
    check(site.process.wait(60) != 0, "it starts")
    contains(site.log(), "PUBLIC_BASE_URL")

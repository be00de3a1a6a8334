"""How long a conversation's files stay and how many there may be: expiry, deletion, quota; never under a program's feet."""
import base64
import io
import os
import signal
import time
import urllib.parse
import zipfile

import runs
import sites
import warm
from harness import check, contains, equal, holds_for, test, wait_until

TTL = 3  # seconds, of the sites here; a look every second
SOON = 20  # a machine that is busy looks later


def _short_lived(**settings):
    site = sites.with_settings(**{"SANDBOX_TTL": f"{TTL}s"} | settings)
    return site, sites.new_conversation(site.client())


def _bounded():
    """Few and small files, which never expire."""
    return sites.with_settings(SANDBOX_QUOTA="2m", SANDBOX_FILES="50", SANDBOX_TTL="0")


def _sandbox_dir(url):
    return url.partition("/files/")[2].partition("/")[0]


def _is_gone(client, url):
    return client.download(url).status == 404


def _delete(client, conversation=None):
    return client.structured("delete_conversation", {"conversationId": conversation or client.conversation})


def _refused(client, conversation=None):
    return client.tool_error("delete_conversation", {"conversationId": conversation or client.conversation})


def _state_of(site, sandbox_dir):
    """The server's own files that name the sandbox directory."""
    return [f"{folder}/{name}" for folder, _, names in os.walk(f"{site.root}/.state") for name in names if sandbox_dir in name]


def _trash(site):
    return os.listdir(f"{site.root}/.trash")


@test("files that were not used for SANDBOX_TTL are gone, their URLs answer 404, and the next call is told once (H-18)", core=True)
def _():
    site, client = _short_lived()
    result = client.run("open('f.txt', 'w').write('x')")
    url = result["files"][0]["url"]
    check(0 <= result["filesExpireAt"] - time.time() <= TTL + 1, f"filesExpireAt {result['filesExpireAt']}")
    equal(client.download(url).status, 200)
    wait_until(lambda: _is_gone(client, url), SOON, "the file is gone")
    wait_until(lambda: _sandbox_dir(url) not in os.listdir(site.root) and not _trash(site), SOON, "the directory is removed")
    equal([name for name in _state_of(site, _sandbox_dir(url)) if "/gone/" not in name], [], "records")
    whole = client.run_whole("import os; print(os.listdir('.'))")
    equal(whole["structuredContent"]["stdout"], "[]\n")
    contains(whole["structuredContent"]["notices"][0], "have expired")
    contains(str(whole["content"]), "have expired")
    check("notices" not in client.run("pass"), "it is told once")


@test("an upload into an expired conversation is told, too, and other tenants hear nothing of it")
def _():
    site, client = _short_lived()
    other = site.client_of("other")
    url = client.upload("f.txt", b"x")["file"]["url"]
    wait_until(lambda: _is_gone(client, url), SOON, "the file is gone")
    other.conversation = client.conversation
    check("notices" not in other.upload("f.txt", b"y"), "another tenant's conversation of that name")
    again = client.upload("f.txt", b"z")
    contains(again["notices"][0], "have expired")
    check(again["filesExpireAt"] > time.time(), "filesExpireAt of an upload")


def _put_by_link(client):
    url = client.structured("create_upload", {"conversationId": client.conversation, "filename": "f.txt"})["url"]
    parts = urllib.parse.urlsplit(url)
    return client.http("PUT", f"{parts.path}?{parts.query}", b"z").json()


def _unpack(client):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("f.txt", "z")
    content = base64.b64encode(packed.getvalue()).decode()
    return client.structured("upload_archive", {"conversationId": client.conversation, "content": content})


@test("an upload by link or archive is told the same, and a listing tells when the files expire")
def _():
    _, first = _short_lived()
    second = sites.new_conversation(first.fresh())
    ways = {first: _put_by_link, second: _unpack}
    urls = [client.upload("f.txt", b"x")["file"]["url"] for client in ways]
    listed = first.structured("list_files", {"conversationId": first.conversation})
    check(0 <= listed["filesExpireAt"] - time.time() <= TTL + 1, f"filesExpireAt {listed}")
    wait_until(lambda: all(_is_gone(first, url) for url in urls), SOON, "the files are gone")
    for client, bring in ways.items():
        again = bring(client)
        contains(again["notices"][0], "have expired")
        check(again["filesExpireAt"] > time.time(), f"filesExpireAt {again}")
        check("notices" not in client.upload("g.txt", b"z"), "it is told once")


@test("the files of a run in progress are kept, however old they are")
def _():
    site, client = _short_lived()
    url = client.upload("old.txt", b"x")["file"]["url"]
    run = runs.begin(client, f"sleep {TTL + 3}; cat old.txt; echo new > new.txt")
    holds_for(lambda: client.download(url).status == 200, TTL + 2, "the file is there while the program runs")
    result = wait_until(lambda: _ended(client, run), SOON, "the run ends")
    equal((result["stdout"], [f["name"] for f in result["files"]]), ("x", ["new.txt"]))
    wait_until(lambda: _is_gone(client, url), SOON, "and goes afterwards")
    check(_sandbox_dir(url) not in os.listdir(site.root), "the directory")


def _sandbox(client):
    return client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]


def _in_sandbox(client, sandbox, command):
    return client.structured("exec", {"sandboxId": sandbox, "command": command})["results"][0]["stdout"]


@test("the files of a conversation with a persistent sandbox are kept, however old they are; delete_conversation requires it closed")
def _():
    site, client = _short_lived()
    url = client.upload("old.txt", b"x")["file"]["url"]
    sandbox = _sandbox(client)
    holds_for(lambda: client.download(url).status == 200, TTL + 3, "the file is there beside the sandbox")
    equal(_in_sandbox(client, sandbox, "cat old.txt"), "x")
    contains(_refused(client), "a persistent sandbox of this conversation is still open")
    equal(_in_sandbox(client, sandbox, "cat old.txt; echo new > new.txt"), "x")
    client.structured("close_sandbox", {"sandboxId": sandbox})
    wait_until(lambda: _is_gone(client, url), SOON, "and goes afterwards")
    check(_sandbox_dir(url) not in os.listdir(site.root), "the directory")
    client.upload("again.txt", b"x")
    client.structured("close_sandbox", {"sandboxId": _sandbox(client)})
    check(_delete(client)["deleted"], "deleted when it is closed")


def _ended(client, run):
    result = runs.look(client, run)
    return result if result["status"] != "running" else None


@test("using a conversation keeps its files: a run, an upload, a reading")
def _():
    _, client = _short_lived(SANDBOX_TTL="6s")
    url = client.upload("f.txt", b"x")["file"]["url"]
    uri = f"sandbox://{client.conversation}/f.txt"
    end = time.monotonic() + 13
    uses = [lambda: client.run("pass"), lambda: client.upload("other", b""),
            lambda: client.request("resources/read", {"uri": uri})]
    while time.monotonic() < end:
        uses[0]()
        uses.append(uses.pop(0))
        equal(client.download(url).status, 200, "while it is used")
        time.sleep(1)


@test("without SANDBOX_TTL nothing expires and no result says so")
def _():
    client = sites.new_conversation(_bounded().client())
    check("filesExpireAt" not in client.run("pass"), "a run")
    check("filesExpireAt" not in client.upload("f", b""), "an upload")


@test("delete_conversation: files, links and kept results are gone, and the name begins anew", core=True)
def _():
    site, client = sites.shared(), sites.client()
    result = client.run("import os\nos.makedirs('a/b')\nopen('a/b/f.txt', 'w').write('x' * 10000)\nopen('g', 'w')")
    kept = runs.begin(client, "echo kept")
    wait_until(lambda: _ended(client, kept), SOON, "the run ends")
    done = _delete(client)
    equal((done["deleted"], done["files"]), (True, 4))
    check(10000 <= done["bytes"] < 100000, f"bytes {done['bytes']}")
    for file in result["files"]:
        equal(client.download(file["url"]).status, 404, file["name"])
    contains(client.tool_error("get_run", {"runId": kept}), "no such run")
    equal(runs.listed(client, conversationId=client.conversation), [])
    wait_until(lambda: not _trash(site), SOON, "the trash is emptied")
    equal(_state_of(site, _sandbox_dir(result["files"][0]["url"])), [], "records")
    contains(_refused(client), "nothing to delete")
    again = client.run("import os; print(os.listdir('.'))")
    equal((again["stdout"], again.get("notices")), ("[]\n", None))


@test("conversations that are deleted one after the other: each answer counts its own files, while others' are being removed")
def _():
    clients = [sites.client() for _ in range(6)]
    for client in clients:
        client.run("mkdir d; touch d/{1..400}", "bash")
    equal([_delete(client)["files"] for client in clients], [401] * len(clients))


@test("a conversation in which a program runs cannot be deleted; afterwards it can")
def _():
    client = sites.client()
    run = runs.begin(client, "sleep 30; echo late > f.txt")
    text = _refused(client)
    contains(text, run)
    contains(text, "or cancel it")
    runs.cancel(client, run)
    wait_until(lambda: _ended(client, run), SOON, "the run ends")
    check(_delete(client)["deleted"], "deleted")


@test("right after a run's answer its conversation can be deleted, and the next run begins anew")
def _():
    client = sites.new_conversation(warm.shared().client())
    for n in range(6):
        result = client.run(f"import os; print(os.listdir('.')); open('f{n}.txt', 'w').write('{n}')")
        equal((result["stdout"], [f["name"] for f in result["files"]]), ("[]\n", [f"f{n}.txt"]))
        url = result["files"][0]["url"]
        equal(client.download(url).body, str(n).encode())
        check(_delete(client)["deleted"], "deleted")
        check(_is_gone(client, url), "the link")


@test("the warm container of a deleted conversation serves no run: the next run's files are real")
def _():
    site = warm.shared()
    client = warm.new_client(site)
    client.run("open('old.txt', 'w').write('old')")
    warm.wait_next(site, client, "python")
    _delete(client)
    result = client.run("import os; print(os.listdir('.')); open('new.txt', 'w').write('new')")
    equal(result["stdout"], "[]\n")
    equal(client.download(result["files"][0]["url"]).body, b"new")


@test("other tenants' conversations can be neither deleted nor detected", core=True)
def _():
    site, client = sites.shared(), sites.client()
    url = client.upload("f.txt", b"x")["file"]["url"]
    other = site.client_of("other")
    foreign = _refused(other, client.conversation)
    equal(foreign, _refused(other, "never existed"))
    equal(client.download(url).status, 200)


HOSTILE = r"""
import os
os.makedirs('-rf/' + 'd/' * 200)
here = os.getcwd()
for _ in range(700):
    os.mkdir('deep'); os.chdir('deep')
os.chdir(here)
for n in range(3000):
    open(f'many{n}', 'w').close()
for c in range(1, 256):
    if c != 47:
        open(b'x' + bytes([c]) + b'y', 'w').close()
os.symlink('../../..', 'up'); os.symlink('/etc', 'etc'); os.symlink('up', 'loop')
os.mkfifo('fifo')
with open('sparse', 'wb') as f:
    f.truncate(1 << 29)
os.mkdir('locked'); open('locked/f', 'w').close(); os.chmod('locked', 0)
os.chmod('.', 0)
"""


@test("a tree that a program made hard to delete is deleted, and nothing beside it", timeout=90)
def _():
    site, client = sites.shared(), sites.client()
    witness = sites.client().upload("w.txt", b"witness")["file"]["url"]
    equal(client.run(HOSTILE)["status"], "ok")
    done = _delete(client)
    check(done["files"] > 3000 and done["bytes"] < 100 << 20, f"a hole takes nothing: {done}")
    wait_until(lambda: not _trash(site), 60, "the trash is emptied")
    equal(client.download(witness).body, b"witness")


@test("what a killed server left in .trash is removed by the next one")
def _():
    site = sites.own(start=False)
    os.makedirs(f"{site.root}/.trash/0123456789abcdef/a/b")
    with open(f"{site.root}/.trash/0123456789abcdef/a/f", "w", encoding="utf-8") as file:
        file.write("x")
    site.start()
    wait_until(lambda: not _trash(site), SOON, "the trash is emptied")


@test("above SANDBOX_TOTAL_MAX conversations are pruned, those used longest ago first; one with a persistent sandbox is kept, and the next in line is pruned instead")
def _():
    site = sites.own({"SANDBOX_TOTAL_MAX": "5m"})
    clients = [sites.new_conversation(site.client()) for _ in range(3)]
    sandbox = _sandbox(clients[0])
    urls = []
    for client in clients:
        urls.append(client.run("open('f.bin', 'wb').write(bytes(range(256)) * 8192)")["files"][0]["url"])
        time.sleep(1.1)  # last uses are known in seconds
    os.kill(site.broker(), signal.SIGKILL)  # the next one looks at its start: one is too many; the sandbox goes on
    sandbox_dirs = [_sandbox_dir(url) for url in urls]
    wait_until(lambda: sandbox_dirs[1] not in os.listdir(site.root), SOON, "the oldest without a sandbox goes")
    check(sandbox_dirs[0] in os.listdir(site.root) and sandbox_dirs[2] in os.listdir(site.root), "the others stay")
    equal(_in_sandbox(clients[0], sandbox, "stat -c %s f.bin"), f"{256 * 8192}\n")


@test("a run that ends above SANDBOX_QUOTA is told so, and what was too much is removed: the next run and upload work (H-58)", core=True)
def _():
    client = sites.new_conversation(_bounded().client())
    whole = client.run_whole("open('small', 'w').write('x'); open('big', 'wb').write(bytes(range(256)) * 12000); print(1)")
    result = whole["structuredContent"]
    equal((result["status"], result["stdout"], [file["name"] for file in result["files"]]), ("disk_limit", "1\n", ["small"]))
    for part in ("SANDBOX_QUOTA", "2.0 MiB", "1 file or folder is removed", '"big"'):
        contains(result["notices"][0], part)
    contains(str(whole["content"]), "SANDBOX_QUOTA")
    equal(client.run("import os; print(os.listdir())")["stdout"], "['small']\n")
    client.upload("f", b"x")


@test("a conversation that is above a lower SANDBOX_QUOTA is refused runs and uploads until there is room")
def _():
    site = sites.own({"SANDBOX_QUOTA": "8m"})
    client = sites.new_conversation(site.client())
    client.run("open('big', 'wb').write(bytes(range(256)) * 12000)")
    site.stop()
    site.settings["SANDBOX_QUOTA"] = "2m"
    site.write_config()
    site.start()
    for text in (client.run_error("pass"), client.tool_error("upload_file", {
            "conversationId": client.conversation, "filename": "f", "content": "eA=="})):
        contains(text, "SANDBOX_QUOTA")
        contains(text, "2.0 MiB")
        contains(text, "delete")
    _delete(client)
    equal(client.run("print(1)")["stdout"], "1\n")


@test("an upload that would pass SANDBOX_QUOTA is refused, and a sparse file takes no room")
def _():
    client = sites.new_conversation(_bounded().client())
    check("notices" not in client.run("open('sparse', 'wb').truncate(1 << 29)"), "a sparse file")
    client.upload("one", b"x" * 1200000)
    text = client.tool_error("upload_file", {"conversationId": client.conversation, "filename": "two",
                                             "content": "eHh4" * 400000})
    contains(text, "SANDBOX_QUOTA")
    contains(text, "1.1 MiB more")


@test("more than SANDBOX_FILES files and folders are removed")
def _():
    client = sites.new_conversation(_bounded().client())
    result = client.run("for n in range(60): open(f'f{n}', 'w').close()")
    equal(result["status"], "disk_limit")
    contains(result["notices"][0], "SANDBOX_FILES")
    equal(client.run("import os; print(len(os.listdir()))")["stdout"], "50\n")


@test("folders too deep to be counted are removed, and told with the run that made them")
def _():
    client = sites.client()
    result = client.run("import os\nfor n in range(850):\n    os.mkdir('d'); os.chdir('d')")
    equal(result["status"], "disk_limit")
    contains(result["notices"][0], "cannot be counted")
    equal(client.run("print(1)")["stdout"], "1\n")


@test("where the disk has less than SANDBOX_DISK_RESERVE left, nothing is begun that could fill it")
def _():
    site = sites.with_settings(SANDBOX_DISK_RESERVE="1000000g")
    client = sites.new_conversation(site.client())
    contains(client.run_error("pass"), "SANDBOX_DISK_RESERVE")
    contains(client.tool_error("upload_file", {"conversationId": client.conversation, "filename": "f", "content": ""}),
             "SANDBOX_DISK_RESERVE")

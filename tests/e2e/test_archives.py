"""download_archive and upload_archive: what is in them, what they refuse, what they leave behind (H-68)."""
import base64
import glob
import gzip
import io
import os
import stat
import subprocess
import tarfile
import threading
import time
import zipfile

import procs
import sites
from harness import IS_ROOT, check, contains, equal, test, wait_until
from mcp import ToolError


# ---- making and taking apart, as others do ----

def _tar(entries, mode="w:gz"):
    """entries: (name, bytes) or (name, type, link's target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry[0])
            if len(entry) == 2:
                info.size = len(entry[1])
                archive.addfile(info, io.BytesIO(entry[1]))
            else:
                info.type, info.linkname = entry[1], entry[2]
                archive.addfile(info)
    return out.getvalue()


def _zip(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


def _unpack(client, archive, **arguments):
    return client.structured("upload_archive", {"conversationId": client.conversation,
                                                "content": base64.b64encode(archive).decode()} | arguments)


def _refused(client, archive, **arguments):
    return client.tool_error("upload_archive", {"conversationId": client.conversation,
                                                "content": base64.b64encode(archive).decode()} | arguments)


def _link(client, **arguments):
    return client.structured("download_archive", {"conversationId": client.conversation} | arguments)


def _members(body, name):
    """Name to content; every member must be a regular file that stays where it is unpacked."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            equal(archive.testzip(), None, "zip")
            files = {info.filename: archive.read(info) for info in archive.infolist()}
            kinds = {stat.S_IFMT(info.external_attr >> 16) for info in archive.infolist()}
        check(kinds <= {stat.S_IFREG}, f"kinds of members: {kinds}")
    else:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            infos = archive.getmembers()
            check(all(info.isreg() and info.uid == info.gid == 0 and info.mode == 0o644 for info in infos), "members of the tar")
            files = {info.name: archive.extractfile(info).read() for info in infos}
    for member in files:
        check(not member.startswith("/") and ".." not in member.split("/") and "\\" not in member, f"member {member!r}")
    return files


def _staged(site):
    return os.listdir(f"{site.root}/.staging")


# ---- download ----

@test("download_archive: what the link brings is what is in the sandbox, as tar.gz and as zip, with names in any script", core=True)
def _():
    client = sites.client()
    files = {"a.txt": b"one", "out/\u00fcber \u8868.csv": b"1,2\n" * 1000, "out/-rf": b"", "a'b\"c.bin": bytes(range(256)) * 300}
    for name, content in files.items():
        client.upload(name, content)
    for kind, media in (("tar.gz", "application/gzip"), ("zip", "application/zip")):
        link = _link(client, format=kind)
        equal((link["name"], link["files"], link["bytes"]), (f"files.{kind}", 4, sum(map(len, files.values()))))
        check(3500 < link["expiresAt"] - time.time() <= 3600, f"expires at {link['expiresAt']}")
        got = client.download(link["url"])
        equal(got.status, 200)
        equal(got.headers["content-type"], media)
        contains(got.headers["content-disposition"], f'attachment; filename="files.{kind}"')
        equal(got.headers["x-content-type-options"], "nosniff")
        equal(_members(got.body, link["name"]), files, kind)
        equal(client.download(link["url"], method="HEAD").status, 200)


@test("download_archive of a folder holds that folder only; of nothing it is refused")
def _():
    client = sites.client()
    client.upload("out/deep er/x", b"1")
    client.upload("outer", b"2")
    link = _link(client, folder="out", format="zip")
    equal(_members(client.download(link["url"]).body, link["name"]), {"out/deep er/x": b"1"})
    equal(_link(client, folder="out/deep er")["name"], "deep er.tar.gz")
    for folder in ("absent", "outer", "out/deep er/x"):
        contains(client.tool_error("download_archive", {"conversationId": client.conversation, "folder": folder}), "folder")
    contains(client.tool_error("download_archive", {"conversationId": client.conversation, "folder": "../x"}), "folder")
    check(client.tool_error("download_archive", {"conversationId": "nobody has used this"}), "no reason")


@test("H-68: links, FIFOs and hostile names that a program made are not in an archive, or are harmless there", core=True)
def _():
    client = sites.client()
    client.run("ln -s /etc/passwd link; ln -s / root; mkdir d; ln -s .. d/up; mkfifo pipe; echo x > real; ln real d/hard; "
               r"echo 1 > 'C:\..\evil'; echo 2 > '..\..\evil'; printf 3 > $'new\nline'; printf 4 > $'\xff\xfe'", "bash")
    for kind in ("tar.gz", "zip"):
        link = _link(client, format=kind)
        members = _members(client.download(link["url"]).body, link["name"])
        equal(len(members), 6, "members")
        equal({members["real"], members["d/hard"], members["C__.._evil"], members[".._.._evil"]}, {b"x\n", b"1\n", b"2\n"})
        equal(members["new\nline"], b"3")


@test("an archive's link that was altered, has expired or has a foreign signature answers 403", core=True)
def _():
    client = sites.client()
    client.upload("a", b"1")
    url = _link(client)["url"]
    other = sites.client()
    other.upload("a", b"2")
    base, query = url.split("?")
    stolen = _link(other)["url"].split("?")[0] + "?" + query
    for bad in (base, url[:-1] + ("0" if url[-1] != "0" else "1"), url.replace(".tar.gz", ".zip"), url.replace("expires=", "expires=1"),
                url + "&x=1", base.replace("files.tar.gz", "x/files.tar.gz") + "?" + query, stolen,
                f"{client.base_url}/archives/x", f"{client.base_url}/archives/{'0' * 64}/files.zip?expires=9999999999&sig={'0' * 64}"):
        got = client.download(bad)
        equal(got.status, 403, bad[-60:])
        check(b"/" not in got.body, f"the answer shows a path: {got.body!r}")
    equal(client.download(url, method="POST").status, 405)
    client.run("rm a", "bash")
    equal(client.download(url).status, 404)


@test("a file that grows and one that shrinks while they are packed leave the archive valid", timeout=90)
def _():
    client = sites.client()
    code = """
import os
noise = os.urandom(1 << 20)
for name in ("grows", "shrinks"):
    with open(name, "wb") as f:
        for _ in range(24): f.write(noise)
open("started", "w").close()
with open("grows", "ab") as g:
    while True:
        g.write(noise[:100000]); g.flush()
        os.truncate("shrinks", 1000)
        with open("shrinks", "r+b") as s:
            s.truncate(20 << 20)
        if g.tell() > 100 << 20: g.truncate(24 << 20)
"""
    run = client.structured("run_code", {"conversationId": client.conversation, "language": "python", "code": code, "background": True})
    check(run["status"] == "running", run)
    wait_until(lambda: glob.glob(f"{sites.shared().root}/*/started"), 20, "the program has begun")
    for kind in ("tar.gz", "zip"):
        link = _link(client, format=kind)
        members = _members(client.download(link["url"]).body, link["name"])
        equal(set(members), {"grows", "shrinks", "started"}, kind)
    client.structured("cancel_run", {"runId": run["runId"]})


def _make_big(client, mib):
    """A file that does not get smaller when it is packed."""
    client.run(f"import os\nnoise = os.urandom(1 << 20)\nwith open('big','wb') as f:\n    for _ in range({mib}): f.write(noise)")


@test("a client that leaves in the middle of a download leaves nothing behind: no process, no file", timeout=90)
def _():
    client = sites.client()
    site = sites.shared()
    _make_big(client, 200)
    url = _link(client)["url"]
    before = set(procs.children(site.broker()))  # the run's supervisor may be among them
    curl = subprocess.Popen(["curl", "-skN", "--limit-rate", "200k", "-o", "/dev/null", url])  # pylint: disable=consider-using-with
    wait_until(lambda: set(procs.children(site.broker())) - before, 10, "the archive is being made")
    curl.kill()
    curl.wait()
    wait_until(lambda: not set(procs.children(site.broker())) - before, 20, "its process has ended")
    equal(_staged(site), [])
    equal(client.run("print(1)")["stdout"], "1\n")


@test("a worker's memory stays flat while it relays a large archive", timeout=120)
def _():
    client = sites.client()
    site = sites.shared()
    _make_big(client, 150)
    url = _link(client, format="zip")["url"]
    before = max(map(procs.private_memory, site.workers()))
    curl = subprocess.Popen(["curl", "-skN", "-o", "/dev/null", url])  # pylint: disable=consider-using-with
    peak = before
    while curl.poll() is None:
        peak = max([peak, *map(procs.private_memory, procs.descendants(site.process.pid))])
        time.sleep(0.05)
    equal(curl.returncode, 0)
    check(peak - before < 60 << 20, f"a process of ours grew from {before} to {peak} bytes")


# ---- upload ----

@test("upload_archive: zip and tar of every compression are unpacked, and programs find the files", core=True)
def _():
    client = sites.client()
    entries = [("a.txt", b"one"), ("d/e/\u00fc b.txt", b"two")]
    kinds = {"plain": _tar(entries, "w"), "gz": _tar(entries), "bz2": _tar(entries, "w:bz2"), "xz": _tar(entries, "w:xz"),
             "zip": _zip(entries)}
    for kind, archive in kinds.items():
        done = _unpack(client, archive, folder=f"in/{kind}")
        equal((done["files"], done["bytes"], done["names"]), (2, 6, [f"in/{kind}/a.txt", f"in/{kind}/d/e/\u00fc b.txt"]))
    out = client.run("cat in/*/a.txt; stat -c %u in/zip/d/e | sed s/$(id -u)/mine/; cat in/xz/d/e/*", "bash")["stdout"]
    equal(out, "one" * 5 + "mine\ntwo")


@test("upload_archive takes an archive that is in the sandbox, and round trips with download_archive")
def _():
    client = sites.client()
    client.upload("x/y.txt", b"hello")
    archive = client.download(_link(client, format="zip")["url"]).body
    client.upload("saved.zip", archive)
    call = {"conversationId": client.conversation, "filename": "saved.zip"}
    contains(client.tool_error("upload_archive", call), "x/y.txt")
    equal(client.structured("upload_archive", call | {"overwrite": True})["files"], 1)
    equal(client.structured("upload_archive", call | {"folder": "copy"})["names"], ["copy/x/y.txt"])
    equal(client.run("cat copy/x/y.txt", "bash")["stdout"], "hello")
    contains(client.tool_error("upload_archive", call | {"filename": "absent.zip"}), "no such file")


@test("upload_archive refuses names that lead elsewhere, and leaves nothing", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    client.upload("witness", b"")
    good = ("good.txt", b"x")
    hostile = [("../evil", b"x"), ("/tmp/evil-archive", b"x"), ("a/../../evil", b"x"), ("%2e%2e/evil", b"x"),
               ("x" * 300, b"x"), ("d/" * 20 + "x", b"x"), good]
    for entry in hostile:
        check(_refused(client, _tar([good, entry])), "no reason")
    contains(_refused(client, _zip([good, ("../evil", b"x")])), "../evil")
    check(_refused(client, b"no archive at all"), "no reason")
    check(_refused(client, _tar([good])[:60]), "no reason")
    equal(client.run("ls -A", "bash")["stdout"].split(), ["witness"])
    check(not os.path.exists("/tmp/evil-archive"), "written outside")
    equal(_staged(site), [])


@test("upload_archive refuses bombs: of size, of ratio, of count, packed twice", timeout=120)
def _():
    client = sites.client()
    site = sites.shared()
    contains(_refused(client, _tar([("z", bytes(64 << 20))])), "times the bytes")
    contains(_refused(client, _zip([("z", bytes(64 << 20))])), "times the bytes")
    contains(_refused(client, _tar([(f"f{i}", b"") for i in range(10001)])), "10000")
    contains(_refused(client, _nested_gzip()), "more than once")
    contains(_refused(client, _lying_sparse_tar()), "times the bytes")
    equal(client.run("ls -A", "bash")["stdout"], "")
    equal(_staged(site), [])


def _nested_gzip():
    return gzip.compress(gzip.compress(_tar([("a", b"1")], "w")))


def _lying_sparse_tar():
    """A member that claims a terabyte, by the extension for sparse files."""
    info = tarfile.TarInfo("huge")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "huge",
                        "GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO())
    return out.getvalue()


@test("upload_archive leaves links, devices and FIFOs out, and says so; nothing goes through one (H-68)", core=True)
def _():
    client = sites.client()
    kinds = [("l", tarfile.SYMTYPE, "/etc/passwd"), ("h", tarfile.LNKTYPE, "good.txt"), ("c", tarfile.CHRTYPE, ""),
             ("b", tarfile.BLKTYPE, ""), ("p", tarfile.FIFOTYPE, ""), ("t", tarfile.SYMTYPE, "/tmp")]
    for entry in kinds:
        done = _unpack(client, _tar([("good.txt", b"x"), entry]), overwrite=True)
        equal((done["names"], len(done["notices"])), (["good.txt"], 1), entry[0])
        contains(done["notices"][0], f"left out: '{entry[0]}'")
    done = _unpack(client, _tar([*kinds, ("t/evil-archive", b"x")]))
    equal(done["names"], ["t/evil-archive"])
    contains(done["notices"][0], "left out: 6 links and devices")
    equal(client.run("find . -mindepth 1 -not -name '.*' | sort", "bash")["stdout"].split(), ["./good.txt", "./t", "./t/evil-archive"])
    check(not os.path.exists("/tmp/evil-archive"), "written through a link")


@test("upload_archive repairs names of zips that do not say their encoding, and says so")
def _():
    client = sites.client()
    names = ["日本語/売上.txt".encode("cp932"), "报告.csv".encode("gbk"), "Prüfung.txt".encode("cp437"), "naïve.md".encode("latin-1"), b"plain"]
    raw = _zip([(chr(65 + i) * len(name), b"x") for i, name in enumerate(names)])
    for i, name in enumerate(names):
        raw = raw.replace(bytes([65 + i]) * len(name), name)
    done = _unpack(client, raw)
    equal(done["names"], ["日本語/売上.txt", "报告.csv", "Prüfung.txt", "naïve.md", "plain"])
    equal(done["notices"], ["4 names in another encoding than UTF-8 repaired"])
    equal(_unpack(sites.client(), _zip([("grüße 日本.txt", b"x")]))["names"], ["grüße 日本.txt"])


@test("upload_archive follows no link that a program planted where it unpacks", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    outside = f"{site.folder}/archive-outside"
    os.mkdir(outside)
    os.chmod(outside, 0o777)
    client.run(f"ln -s {outside} d; ln -s {outside}/f g; ln -s / root", "bash")
    for name in ("d/f", "g", "root/tmp/evil-archive"):
        for overwrite in (False, True):
            try:
                _unpack(client, _tar([(name, b"evil")]), overwrite=overwrite)
            except ToolError as refused:
                check(refused.text, "no reason")
    equal(os.listdir(outside), [])
    check(not os.path.exists("/tmp/evil-archive"), "written through a link")


@test("the archive reader has an account of its own, no network, no files and no memory of the server")
def _():
    if not IS_ROOT:
        return
    client = sites.client()
    site = sites.shared()
    client.run("import os\nimport tarfile\nwith open('n','wb') as f:\n    for _ in range(24): f.write(os.urandom(1 << 20))\n"
               "tarfile.open('n.tar.bz2', 'w:bz2', compresslevel=1).add('n')")
    other = client.fresh()
    work = threading.Thread(target=lambda: other.tool("upload_archive", {"conversationId": client.conversation, "filename": "n.tar.bz2",
                                                                         "folder": "again"}))
    work.start()
    status = wait_until(lambda: _reader_status(site), 20, "there is a reader", pause=0.002)
    work.join()
    contains(status, "Uid:\t65534\t65534\t65534\t65534")
    contains(status, "NoNewPrivs:\t1")
    contains(status, "Seccomp:\t2")


def _reader_status(site):
    broker = site.broker()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                if b"read-archive" not in cmdline.read() or procs.parent(procs.parent(int(pid))) != broker:
                    continue
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                text = status.read()
            if "Seccomp:\t2" in text:
                return text
        except OSError:
            pass
    return None

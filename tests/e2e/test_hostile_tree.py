"""A program that swaps links, folders and FIFOs in a loop while the tools, links and URLs work on the same names (H-02, H-03, H-28, H-50)"""
import base64
import io
import os
import threading
import time
import urllib.parse
import zipfile

import fcgi
import sites
from harness import check, equal, test, wait_until
from mcp import ToolError

# How many reads, uploads and so on; the promise is made for 100000.
CALLS = int(os.environ.get("SANDCGI_TEST_SWAPS", "1000"))
CLIENTS = 4
LEGACY = {"MCP-Protocol-Version": "2025-11-25"}
PUT = base64.b64encode(b"put").decode()

# Every name is, in turn: a file, a link out, a folder, a link to a folder outside, a FIFO. Renames swap two of them at once.
SWAPPER = """
import contextlib, ctypes, os, shutil, time
outside = {outside!r}
rename2 = ctypes.CDLL(None, use_errno=True).renameat2
def clear(name):
    with contextlib.suppress(OSError):
        os.unlink(name)
    shutil.rmtree(name, ignore_errors=True)
def file(name):
    with open(name, "x") as f: f.write("inside")
def folder(name):
    os.mkdir(name)
    file(name + "/f")
kinds = [file, lambda n: os.symlink(outside + "/f", n), folder, lambda n: os.symlink(outside, n), os.mkfifo]
for name in ("way", "other"): clear(name)
folder("way")
os.symlink(outside, "other")
file("begun")
end, swaps = time.time() + {seconds}, 0
while time.time() < end and not os.path.exists("stop"):
    for name in ("a", "b"):
        with contextlib.suppress(OSError):
            clear(name)
            kinds[swaps % len(kinds)](name)
    for _ in range(20):
        rename2(-100, b"way", -100, b"other", 2)
        rename2(-100, b"a", -100, b"b", 2)
        swaps += 1
print(swaps)
"""


def _call(client, tool, **arguments):
    """The structured result, or None when it was refused."""
    try:
        return client.structured(tool, {"conversationId": client.conversation} | arguments)
    except ToolError as refused:
        check(refused.text, "a refusal without a reason")
        check("OUTSIDE" not in refused.text, "what lies outside is in an error")
        return None


def _look(client, name):
    got = _call(client, "read_file", filename=name)
    if got:
        check(got["content"] in ("", "inside", "put"), f"{name}: {got}")
    return got


def _browse(client):
    page = _call(client, "list_files", recursive=True)
    for row in page["files"] if page else ():
        check(row.get("size") != len("OUTSIDE"), f"listed from outside: {row}")
        check(not row["name"].startswith(("link/", "a/f/", "b/f/")), f"behind a link: {row}")
    return page


def _zip():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("f", "put")
    return base64.b64encode(packed.getvalue()).decode()


def _put_by_link(client, name):
    link = _call(client, "create_upload", filename=name)
    parts = urllib.parse.urlsplit(link["url"])
    answer = client.http("PUT", f"{parts.path}?{parts.query}", b"put")
    # 500: the program removed the folder as often as it was made.
    check(answer.status in (201, 400, 500), f"{name}: {answer.status} {answer.body}")
    check(b"OUTSIDE" not in answer.body, f"{name} from outside")
    return answer.status == 201 or None


def _fetch_archive(client, folder):
    """What is packed while it changes."""
    link = _call(client, "download_archive", folder=folder, format="tar")
    if not link:
        return None
    parts = urllib.parse.urlsplit(link["url"])
    answer = client.http("GET", f"{parts.path}?{parts.query}")
    check(answer.status in (200, 404), f"an archive of {folder}: {answer.status}")
    check(b"OUTSIDE" not in answer.body, f"an archive of {folder} has what lies outside")
    return answer.status == 200 or None


def _get_of_worker(client, target):
    """As another web server than nginx would have it served."""
    status, _headers, body = fcgi.request(client.site.front, {"REQUEST_METHOD": "GET", "REQUEST_URI": target, "SANDCGI_PLACE": "file",
                                                              "SANDCGI_SECRET": client.site.secret})
    check(status in (200, 404, 503), f"{target} of a worker: {status}")  # 503: the system call was interrupted by a rename too often
    check(b"OUTSIDE" not in body, f"{target} of a worker from outside")
    return status == 200 or None


def _read_resource(client, name):
    answer = client.request("resources/read", {"uri": f"sandbox://{client.conversation}/{name}"}, headers=LEGACY)
    for text in (b"OUTSIDE", base64.b64encode(b"OUTSIDE")):
        check(text not in answer.body, f"the resource {name} from outside")
    return "result" in answer.json() or None


def _steps(client, url):
    """What is done in turn; each is one call."""
    yield from (lambda n=n: _look(client, n) for n in ("way/f", "a", "b/f", "other/f"))
    yield from (lambda n=n: _call(client, "write_file", filename=n, text="put", overwrite=True) for n in ("way/f", "a", "other/new", "b"))
    yield lambda: _browse(client)
    yield from (lambda n=n: _put_by_link(client, n) for n in ("way/f", "b", "other/new"))
    yield from (lambda n=n: _call(client, "upload_file", filename=n, content=PUT) for n in ("a/f", "other/f"))
    yield from (lambda n=n: _call(client, "upload_archive", folder=n, content=ZIP, overwrite=True) for n in ("way", "other"))
    yield from (lambda n=n: _fetch_archive(client, n) for n in ("way", "a"))
    yield from (lambda n=n: _read_resource(client, n) for n in ("other/f", "a", "way/f"))
    yield lambda: _call(client, "move_file", **{"from": "way/f", "to": "a/f", "overwrite": True})
    yield lambda: _call(client, "move_file", **{"from": "a", "to": "other/a", "overwrite": True})
    yield lambda: _call(client, "delete_file", filename="other/a", recursive=True)
    yield lambda: _call(client, "delete_file", filename="b", recursive=True)
    for name in ("way/f", "a", "other/f"):
        def get(name=name):
            answer = client.http("GET", f"{url}/{name}")
            check(answer.status in (200, 404, 403, 416), f"{name}: {answer.status}")
            check(b"OUTSIDE" not in answer.body, f"{name} from outside")
            return answer.status == 200 or None
        yield get
        yield lambda name=name: _get_of_worker(client, f"{url}/{name}")


ZIP = _zip()


class _Worker(threading.Thread):
    def __init__(self, client, url, calls):
        super().__init__()
        self.client, self.url, self.calls = client, url, calls
        self.done = self.worked = 0
        self.slowest = 0.0
        self.problem = None

    def run(self):
        try:
            while self.done < self.calls:
                for step in _steps(self.client, self.url):
                    start = time.monotonic()
                    self.worked += step() is not None
                    self.slowest = max(self.slowest, time.monotonic() - start)
                    self.done += 1
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = problem


def _ended(client, run):
    result = client.structured("get_run", {"runId": run})
    return result if result["status"] != "running" else None


@test(f"links, folders and FIFOs are swapped during {CALLS} calls of the file tools, links, archives and downloads: nothing from outside, nothing outside changes, no hang",
      timeout=120 + CALLS // 20)
def _():
    site = sites.own({"SANDBOX_TIMEOUT_MAX": "2h", "SANDBOX_CPUS": "1", "SANDCGI_WORKERS": "8"})
    client = sites.new_conversation(site.client())
    outside = f"{site.folder}/outside"
    os.makedirs(outside)
    for path, mode in ((outside, 0o777), (f"{outside}/f", 0o666)):
        if mode == 0o666:
            with open(path, "w", encoding="ascii") as file:
                file.write("OUTSIDE")
        os.chmod(path, mode)
    base = client.upload("base", b"x")["file"]["url"].rsplit("/", 1)[0].removeprefix(site.base_url)
    swapper = client.run(SWAPPER.format(outside=outside, seconds=7000), timeout=7200, background=True)["runId"]
    wait_until(lambda: _call(client, "read_file", filename="begun"), 30, "the swapping begins")
    workers = []
    for _ in range(CLIENTS):
        one = client.fresh()
        one.conversation, one.site = client.conversation, site
        workers.append(_Worker(one, base, CALLS // CLIENTS))
    start = time.monotonic()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    took = time.monotonic() - start
    client.upload("stop", b"")
    ended = wait_until(lambda: _ended(client, swapper), 30, "the swapping ends")
    for one in workers:
        if one.problem:
            raise one.problem
    done, worked = sum(one.done for one in workers), sum(one.worked for one in workers)
    slowest = max(one.slowest for one in workers)
    equal((ended["status"], ended["stderr"]), ("ok", ""), "the swapping program")
    swaps = int(ended["stdout"])
    print(f"   {done} calls in {took:.0f} s, {worked} of them found something, {swaps} swaps, the slowest took {slowest:.2f} s", flush=True)
    check(worked > done // 20 and swaps > 100, f"{worked} of {done} calls found something, {swaps} swaps: no race")
    check(slowest < 30, f"a call took {slowest:.1f} s")
    equal(os.listdir(outside), ["f"])
    with open(f"{outside}/f", encoding="ascii") as file:
        equal(file.read(), "OUTSIDE")
    equal(os.listdir(f"{site.root}/.staging"), [])

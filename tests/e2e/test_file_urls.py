"""Files' URLs: of nginx, whose refusals tests/nginx/groups_files.py has, and of a worker that serves them itself, as under Apache: the same answers (H-02 to H-05,
H-14)."""
import contextlib
import os
import re
import secrets
import signal
import stat
import subprocess
import threading
import time
import urllib.parse

import fcgi
import procs
import sites
from harness import check, contains, equal, test, wait_until

MIB = 1024 * 1024
HEADERS = ("content-type", "content-disposition", "content-security-policy", "x-content-type-options", "referrer-policy", "cache-control", "etag",
           "last-modified", "content-length", "content-range", "accept-ranges", "location", "access-control-allow-origin")
# nginx writes these answers as pages of its own.
ONLY_SAFETY = {412: HEADERS[2:6], 416: (*HEADERS[2:6], "content-range")}
SECRET = b"canary-outside-the-sandbox"


@test("a file is served with length, type, ETag and the headers that make it harmless", core=True)
def _():
    client = sites.client()
    url = client.upload("a.txt", b"0123456789")["file"]["url"]
    answer = client.download(url)
    equal((answer.status, answer.body), (200, b"0123456789"))
    contains(answer.headers["Content-Type"], "text/plain")
    equal(answer.headers["X-Content-Type-Options"], "nosniff")
    contains(answer.headers["Content-Security-Policy"], "sandbox")
    equal(answer.headers["Referrer-Policy"], "no-referrer")
    contains(answer.headers["Cache-Control"], "private")
    check(answer.headers["ETag"], "no ETag")
    check(answer.headers.get("Access-Control-Allow-Origin") is None, "CORS")
    head = client.download(url, method="HEAD")
    equal((head.status, head.body, head.headers["Content-Length"]), (200, b"", "10"))
    equal(client.download(url, {"If-None-Match": answer.headers["ETag"]}).status, 304)


@test("H-03: links of any kind are never followed, whatever they point at", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    other = sites.client()
    other_dir = other.upload("theirs.txt", b"theirs")["file"]["url"].split("/")[-3]
    base = client.upload("base.txt", b"0123456789")["file"]["url"].rsplit("/", 1)[0]
    client.run(f"""
ln -s /proc/self/environ environ; ln -s /proc/1/root/etc/shadow shadow; ln -s /proc/self/fd/3 fd; ln -s /etc/passwd passwd
ln -s base.txt own; ln -s / root; mkdir real; echo x >real/x; ln -s real linked; ln -s ../{other_dir}/theirs.txt theirs
ln -s {site.root}/{other_dir} otherdir; ln base.txt hard; mkfifo fifo; ln -s /dev/zero zero
""", "bash")
    for name in ("environ", "shadow", "fd", "passwd", "own", "root/etc/passwd", "linked/x", "theirs", "otherdir/theirs.txt", "zero",
                 "fifo"):
        equal(client.download(f"{base}/{name}").status, 404, name)
    equal(client.download(f"{base}/real/x").status, 200)


@test("a big file comes whole, a deleted one is 404")
def _():
    client = sites.client()
    result = client.run("head -c 50000000 /dev/zero >big", "bash")
    url = result["files"][0]["url"]
    equal(len(client.download(url).body), 50000000)
    client.run("rm big", "bash")
    equal(client.download(url).status, 404)


def _params(site, target, method="GET", headers=None):
    """What a web server passes that has no location for files."""
    params = {"REQUEST_METHOD": method, "REQUEST_URI": target, "CONTENT_TYPE": "", "SANDCGI_SECRET": site.secret, "SANDCGI_PLACE": "file"}
    return params | {"HTTP_" + name.upper().replace("-", "_"): value for name, value in (headers or {}).items()}


def _of_worker(site, *request):
    return fcgi.request(site.front, _params(site, *request))


def _target(url):
    parts = urllib.parse.urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _same(client, site, target, method="GET", headers=None):
    """Compares both answers to one request; returns their status."""
    nginx = client.http(method, target, headers=headers)
    status, ours, body = _of_worker(site, target, method, headers)
    where = f"{method} {target[:200]} {headers or ''}"
    check(SECRET not in body and SECRET not in nginx.body, f"{where}: what lies outside was sent")
    if nginx.status == 400:  # nginx cannot parse it
        equal(status, 404, where)
        return status
    equal(status, nginx.status, where)
    for name in ONLY_SAFETY.get(status, HEADERS):
        equal(ours.get(name), nginx.headers.get(name), f"{where}: {name}")
    if status not in ONLY_SAFETY:
        equal(body, nginx.body, where)
    return status


TREE = """
printf 0123456789 >a.txt; : >empty.txt; mkdir -p sub/deep; printf a,b >sub/deep/b.csv; printf x >.hidden; printf x >.png; printf x >no
for type in html svg pdf js xml css png PNG jpeg json md wav mp4 zip parquet xyz; do printf '<script>1</script>' >"t.$type"; done
printf x >'a b%#?;+"\\.txt'; printf x >$'new\\nline.txt'; printf x >$'bytes\\377.txt'; printf x >%2e%2e; printf x >$(printf 'x%.0s' {1..255})
ln -s a.txt link.txt; ln -s sub dir; ln -s /etc/passwd passwd; ln -s OUTSIDE/secret secret.txt; ln -s OUTSIDE outside; ln -s / root
ln -s /proc/self/environ environ; ln -s ../../a.txt up.txt; ln -s loop loop; ln -s none dangling; mkfifo fifo fifo.txt
"""


def _hostile_tree(site, client):
    """The folder of the conversation on disk, with everything in it that a program, or root, can make."""
    outside = f"{site.folder}/outside"
    os.makedirs(outside, exist_ok=True)
    with open(f"{outside}/secret", "wb") as file:
        file.write(SECRET)
    os.chmod(file.name, 0o644)
    result = client.run(TREE.replace("OUTSIDE", outside), "bash")
    equal((result["status"], result["stderr"]), ("ok", ""))
    url = client.upload("first.txt", b"first")["file"]["url"]
    folder = f"{site.root}/{re.search('[0-9a-f]{64}', url).group()}"
    os.mknod(f"{folder}/socket.txt", stat.S_IFSOCK | 0o666)
    try:
        os.mknod(f"{folder}/device.txt", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pass  # not every container may
    return url


NAMES = ("a.txt", "empty.txt", "sub/deep/b.csv", ".hidden", ".png", "no", *(f"t.{t}" for t in "html svg pdf js xml css png PNG jpeg json md wav mp4 zip parquet xyz".split()),
         "a b%#?;+\"\\.txt", "new\nline.txt", b"bytes\xff.txt", "x" * 255)
LEADS_NOWHERE = ("", "sub", "sub/", "sub/deep/", "none", "a.txt/", "a.txt/x", "link.txt", "dir/deep/b.csv", "passwd", "secret.txt", "outside/secret", "root/etc/passwd",
                 "environ", "up.txt", "loop", "dangling", "fifo", "fifo.txt", "socket.txt", "device.txt", "x" * 256, "d/" * 1500 + "x", "%252e%252e/secret", "..%5csecret",
                 "./a.txt", "sub/../a.txt", "/a.txt", "sub//deep/b.csv", "%2e/a.txt", "%2e%2e/a.txt", "..%2fa.txt", "sub%2fdeep/b.csv", "a%2etxt", "a.txt%00", "%00", "..",
                 "../..", "../../.state/x", "%2E%2E/%2E%2E/.state/x")


@test("a worker answers for every name as nginx does: files, folders, links, FIFOs, devices, dots, NULs, long names", timeout=120, core=True)
def _():
    site, client = sites.shared(), sites.client()
    base = _target(_hostile_tree(site, client)).rsplit("/", 1)[0]
    for name in NAMES:
        target = f"{base}/{urllib.parse.quote(name)}"
        equal(_same(client, site, target), 200, target)
        equal(_same(client, site, target, "HEAD"), 200, target)
    for name in LEADS_NOWHERE:
        equal(_same(client, site, f"{base}/{name}"), 404, name)
    one = base.split("/")[2]
    token = base.split("/")[3]
    for target in ("/files/", "/files/.state/x", f"/files/.state/{one}.json", f"/files/{one}", f"/files/{one}/", f"/files/{one}/a.txt", f"/files/{one}/{token[:-1]}/a.txt",
                   f"/files/{one}/{'A' * 22}/a.txt", f"/files/{one[:-1]}/{token}/a.txt", f"/files/{'0' * 64}/{token}/a.txt", f"/files/{one.upper()}/{token}/a.txt",
                   f"/files//{one}/{token}/a.txt", f"/files/{one}/{token}%2fa.txt", f"/files/%30{one[1:]}/{token}/a.txt", f"/files/{one}/a.txt?expires=9999999999&sig={token}"):
        equal(_same(client, site, target), 404, target)
    equal(_same(client, site, f"{base}/a.txt?v=/../x"), 200)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"):
        equal(_same(client, site, f"{base}/a.txt", method), 404, method)


@test("a worker answers conditions and ranges as nginx does")
def _():
    site, client = sites.shared(), sites.client()
    target = _target(client.upload("a.txt", b"0123456789")["file"]["url"])
    empty = _target(client.upload("empty.txt", b"")["file"]["url"])
    whole = client.http("GET", target).headers
    etag, date, other = whole["ETag"], whole["Last-Modified"], "Tue, 14 Nov 2023 22:13:20 GMT"
    for status, headers in (
            (304, {"If-None-Match": etag}), (304, {"If-None-Match": f'"x", W/{etag}'}), (304, {"If-None-Match": "*"}), (200, {"If-None-Match": '"x"'}),
            (304, {"If-Modified-Since": date}), (200, {"If-Modified-Since": other}), (200, {"If-Modified-Since": "Tue, 14 Nov 2090 22:13:20 GMT"}),
            (200, {"If-Modified-Since": "x"}), (304, {"If-Modified-Since": date, "If-None-Match": etag}), (200, {"If-Modified-Since": date, "If-None-Match": '"x"'}),
            (200, {"If-Match": etag}), (412, {"If-Match": '"x"'}), (412, {"If-Match": f"W/{etag}"}), (200, {"If-Unmodified-Since": date}),
            (412, {"If-Unmodified-Since": other}), (206, {"Range": "bytes=0-3"}), (206, {"Range": "bytes=0-"}), (206, {"Range": "bytes=-3"}),
            (206, {"Range": "bytes=-99"}), (206, {"Range": "bytes=4-99"}), (206, {"Range": "bytes=0-1,50-60"}), (416, {"Range": "bytes=10-"}),
            (416, {"Range": "bytes=5-4"}), (416, {"Range": "bytes=x"}), (416, {"Range": "bytes=-0"}), (200, {"Range": "items=0-1"}), (200, {"Range": "bytes="}),
            (206, {"Range": "bytes=0-3", "If-Range": etag}), (206, {"Range": "bytes=0-3", "If-Range": date}), (200, {"Range": "bytes=0-3", "If-Range": '"x"'}),
            (200, {"Range": "bytes=0-3", "If-Range": other}), (200, {"Range": "bytes=0-3", "If-Range": f"W/{etag}"}), (304, {"Range": "bytes=0-3", "If-None-Match": etag})):
        for method in ("GET", "HEAD"):
            equal(_same(client, site, target, method, headers), status, headers)
    for value in ("bytes=0-0", "bytes=0-", "bytes=-1"):
        equal(_same(client, site, empty, "GET", {"Range": value}), 200, value)
    # Several ranges are sent by nginx in parts; the whole is an answer, too.
    status, _headers, body = _of_worker(site, target, "GET", {"Range": "bytes=0-1,4-5"})
    equal((status, body), (200, b"0123456789"))


@test("a worker answers signed URLs as nginx does, until they expire (H-06)", core=True)
def _():
    site = sites.with_settings(SANDBOX_URL_TTL="1h")
    client = sites.new_conversation(site.client())
    target = _target(client.upload("a b/t\u00e4ble.csv", b"0123456789")["file"]["url"])
    client.run("ln -s 'a b/t\u00e4ble.csv' link.csv", "bash")
    other = _target(client.upload("link.csv2", b"x")["file"]["url"])
    equal(_same(client, site, target), 200)
    equal(_same(client, site, target, "GET", {"Range": "bytes=2-4"}), 206)
    path, query = target.split("?")
    last = "A" if target[-1] != "A" else "Q"
    for bad in (path, f"{path}?", target[:-1] + last, target + "A", target + "&x=1", target.replace("expires=", "expires=0"), target.replace("expires=", "expires=1"),
                f"{path}?{other.split('?')[1]}", f"{other.split('?')[0]}?{query}", f"{path}?{query.split('&')[1]}&{query.split('&')[0]}"):
        equal(_same(client, site, bad), 403, bad)
    for bad in (target.replace("/files/", "/files/x"), f"{path}/?{query}", path.replace("a%20b/", "a%20b/../a%20b/") + f"?{query}"):
        equal(_same(client, site, bad), 404, bad)
    equal(_same(client, site, target, "POST"), 404)


@test("a signed URL of a symbolic link is 404, of nginx and of a worker (H-02)")
def _():
    site = sites.with_settings(SANDBOX_URL_TTL="1h")
    client = sites.new_conversation(site.client())
    target = _target(client.upload("link.txt", b"x")["file"]["url"])
    client.run("rm link.txt; ln -s /etc/passwd link.txt", "bash")
    equal(_same(client, site, target), 404)
    client.run("rm link.txt; mkfifo link.txt", "bash")
    equal(_same(client, site, target), 404)


def _sparse(site, client, size):
    url = client.upload("large.bin", b"x")["file"]["url"]
    os.truncate(f"{site.root}/{re.search('[0-9a-f]{64}', url).group()}/large.bin", size)
    return _target(url)


def _peaks(site):
    return {pid: int((procs.status(pid, "VmHWM") or "0").split()[0]) for pid in procs.descendants(site.process.pid)}


@test("a worker sends a file of more than 2 GiB in flat memory, and its last bytes")
def _():
    site = sites.shared()
    client = sites.client()
    size = (1 << 31) + 4097
    target = _sparse(site, client, size)
    _of_worker(site, target, "HEAD")
    before = _peaks(site)
    status, headers, body = _of_worker(site, target, "GET", {"Range": "bytes=-3"})
    equal((status, headers["content-range"], body), (206, f"bytes {size - 3}-{size - 1}/{size}", b"\0" * 3))
    got = 0
    with fcgi.connect(site.front) as sock:
        fcgi.send_request(sock, _params(site, target))
        while got < 300 * MIB:
            part = sock.recv(4 * MIB)
            check(part, "it ended early")
            got += len(part)
    after = _peaks(site)
    grown = max(after[pid] - before[pid] for pid in before if pid in after)
    check(grown < 4096, f"a process grew by {grown} KiB")


@test("a client that stops reading a file holds a worker, not the broker; other downloads go on")
def _():
    site = sites.shared()
    client = sites.client()
    target = _sparse(site, client, 64 * MIB)
    stuck = [fcgi.connect(site.front) for _ in range(12)]
    for sock in stuck:
        fcgi.send_request(sock, _params(site, target))
    wait_until(lambda: len(site.busy_workers()) >= 12, 10, "they are being served")
    jobs = procs.children(site.broker())
    start = time.monotonic()
    equal(_of_worker(site, target, "GET", {"Range": "bytes=1-4"})[2], b"\0" * 4)
    client.upload("small.txt", b"small")
    check(time.monotonic() - start < 5, "others wait")
    check(len(procs.children(site.broker())) <= len(jobs), "the broker has no process for a download")
    for sock in stuck:
        sock.close()
    wait_until(lambda: not site.busy_workers(), 10, "the workers are free when the clients have left")


@test("a file that is cut while it is sent breaks the connection off")
def _():
    site = sites.shared()
    client = sites.client()
    target = _sparse(site, client, 64 * MIB)
    with fcgi.connect(site.front) as sock:
        fcgi.send_request(sock, _params(site, target))
        contains(fcgi.read_until(sock, b"\r\n\r\n").decode("latin-1"), f"Content-Length: {64 * MIB}")
        client.run("truncate -s 1M large.bin", "bash")
        got = 0
        while part := sock.recv(MIB):
            got += len(part)
    check(got < 64 * MIB, f"{got} bytes")


@test("files are served behind our nginx only by nginx: a worker without the secret or the place refuses (H-64)", core=True)
def _():
    site, client = sites.shared(), sites.client()
    target = _target(client.upload("a.txt", b"x")["file"]["url"])
    equal(_of_worker(site, target)[0], 200)
    params = _params(site, target)
    for left_out in ("SANDCGI_SECRET", "SANDCGI_PLACE"):
        status, _headers, body = fcgi.request(site.front, {name: value for name, value in params.items() if name != left_out})
        check(status in (401, 403) and body != b"x", f"without {left_out}: {status}")


def _replace_secret(site, until):
    """As nginx/README.md has it: the settings, then nginx, then the server."""
    site.settings |= {"FILE_SECRET_OLD": site.settings["FILE_SECRET"], "FILE_SECRET_OLD_UNTIL": until, "FILE_SECRET": secrets.token_hex(32)}
    _take_up(site)


def _utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _take_up(site):
    site.write_config()
    before = [*procs.children(site.nginx_process.pid), *site.masters()]
    site.take_up_file_key()
    os.kill(site.process.pid, signal.SIGHUP)
    wait_until(lambda: not set(before) & {*procs.children(site.nginx_process.pid), *site.masters()}, 20, "nginx and the server have taken it up")
    site.wait_healthy()


@contextlib.contextmanager
def _refusals(site, target):
    """Asks for it all the time; what is not answered with 200 comes into the list."""
    refusals, done = [], threading.Event()

    def ask():
        client = site.client()
        while not done.is_set():
            client.close()
            status = client.http("GET", target).status
            refusals.extend([status] if status != 200 else [])
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield refusals
    finally:
        done.set()
        thread.join()


def _before_and_after(settings, refused):
    """A server whose FILE_SECRET is replaced; yields when the old one's time is over, and goes on behind it."""
    site = sites.own(settings)
    client = sites.new_conversation(site.client())
    named = {"conversationId": client.conversation}
    old = _target(client.upload("a.txt", b"0123456789")["file"]["url"])
    archive = _target(client.structured("download_archive", named)["url"])
    tickets = [_target(client.structured("create_upload", named | {"filename": name})["url"]) for name in ("u.txt", "v.txt")]
    with _refusals(site, old) as refusals:
        _replace_secret(site, _utc(time.time() + 3600))
    equal(refusals, [], "answers to the old link meanwhile")
    new = _target(client.structured("list_files", named)["files"][0]["url"])
    check(new != old, "the URL has the old token")
    equal(client.run("print(open('a.txt').read())")["stdout"], "0123456789\n")
    for target in (old, new):
        equal((client.http("GET", target).status, client.http("GET", target, headers={"Range": "bytes=2-4"}).body), (200, b"234"), target)
        equal(_of_worker(site, target)[0], 200, target)
    equal((client.http("GET", archive).status, client.http("PUT", tickets[0], b"up").status), (200, 201))
    for bad in (old.replace("/files/", "/files/0"), re.sub("[0-9a-f]{64}", "0" * 64, old)):
        check(client.http("GET", bad).status in (403, 404), bad)
    until = int(time.time()) + 6
    site.settings["FILE_SECRET_OLD_UNTIL"] = _utc(until)
    _take_up(site)
    yield until
    equal((client.http("GET", old).status, _of_worker(site, old)[0], client.http("GET", new).status), (refused, refused, 200))
    equal((client.http("GET", archive).status, client.http("PUT", tickets[1], b"up").status), (403, 403))
    contains(subprocess.run([site.binary, "check", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=True).stderr,
             "note: FILE_SECRET_OLD_UNTIL=")
    site.settings |= {"FILE_SECRET_OLD": None, "FILE_SECRET_OLD_UNTIL": None}
    _take_up(site)
    equal((client.http("GET", old).status, client.http("GET", new).status), (refused, 200))
    equal(client.run("print(open('u.txt').read())")["stdout"], "up\n")


@test("FILE_SECRET is replaced: conversations stay, and links, uploads and archives of before work up to their time", timeout=120)
def _():
    both = _before_and_after({}, 404), _before_and_after({"SANDBOX_URL_TTL": "1h"}, 403)
    until = max([next(one) for one in both])
    time.sleep(max(0, until - time.time()) + 0.2)
    for one in both:
        equal(next(one, None), None)

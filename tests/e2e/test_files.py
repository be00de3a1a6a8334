"""/files through the real nginx: what is served, how, and what never is (H-03, H-04, H-05, H-14)."""
import os
import socket
import urllib.parse

import sites
from harness import check, contains, equal, test


def _raw(site, target, method="GET"):
    """A request line that no client library would send; the status."""
    with socket.create_connection(("127.0.0.1", site.http_port), timeout=10) as sock:
        sock.sendall(f"{method} ".encode() + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = b""
        while part := sock.recv(65536):
            data += part
    return int(data.split(b" ", 2)[1]), data


def _base(client):
    return client.upload("base.txt", b"0123456789")["file"]["url"].rsplit("/", 1)[0]


@test("a file is served with length, type, ETag and the headers that make it harmless")
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


@test("ranges: the first bytes, the last, one past the end")
def _():
    client = sites.client()
    url = client.upload("r.bin", b"0123456789")["file"]["url"]
    for value, status, body in (("bytes=0-3", 206, b"0123"), ("bytes=-2", 206, b"89"), ("bytes=5-", 206, b"56789")):
        answer = client.download(url, {"Range": value})
        equal((answer.status, answer.body), (status, body), value)
    equal(client.download(url, {"Range": "bytes=10-"}).status, 416)


@test("active types are downloads, pictures and text are shown; all of them under CSP sandbox (H-14, H-31)")
def _():
    client = sites.client()
    for name in ("x.html", "x.htm", "x.svg", "x.xhtml", "x.xml", "x.js", "x.pdf", "X.HTML", "x.unknown", "noextension"):
        answer = client.download(client.upload(name, b"<script>alert(1)</script>")["file"]["url"])
        contains(answer.headers.get("Content-Disposition", ""), "attachment", name)
        contains(answer.headers["Content-Security-Policy"], "sandbox", name)
        equal(answer.headers["X-Content-Type-Options"], "nosniff", name)
    for name in ("x.png", "x.jpg", "x.csv", "x.txt", "x.json"):
        answer = client.download(client.upload(name, b"x")["file"]["url"])
        check("attachment" not in (answer.headers.get("Content-Disposition") or ""), name)
    equal(client.download(client.upload("index.html", b"plain")["file"]["url"]).body, b"plain")


@test("only GET and HEAD; directories, missing files and our own folders are 404 with the same body")
def _():
    site = sites.shared()
    client = sites.client()
    base = _base(client)
    client.run("mkdir dir; echo x >dir/index.html; chmod 000 base.txt; chmod 644 base.txt", "bash")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"):
        check(client.download(base + "/base.txt", method=method).status in (404, 405), method)
    bodies = set()
    place = base.partition("/files/")[2]
    for target in ("", "/", "/dir", "/dir/", "/none", "/base.txt/", "/base.txt/x", "/dir/../base.txt"):
        status, data = _raw(site, f"/files/{place}{target}".encode())
        equal(status, 404, target)
        bodies.add(data.split(b"\r\n\r\n", 1)[1])
    equal(len(bodies), 1, "bodies of the 404s (H-59)")
    for target in ("/files", "/files/", "/files/.runs/x", "/files/.state/x", "/files/.staging/x", "/files/" + "0" * 64 + "/x"):
        equal(_raw(site, target.encode())[0], 404, target)


@test("H-05: names that are not 64 small hex digits never reach the disk")
def _():
    site = sites.shared()
    hex64, token = _base(sites.client()).rsplit("/", 2)[1:]
    for name in ("." * 16, "." * 64, "%2e%2e", "%2e%2e/%2e%2e", hex64.upper(), hex64[:63], hex64 + "0", hex64[:63] + "g", "%00" * 64,
                 hex64 + "%00", hex64 + "%2f..", "..%2f" + hex64, "\\..\\" + hex64, hex64 + "/..%2f" + hex64, hex64 + "//"):
        equal(_raw(site, f"/files/{name}/{token}/base.txt".encode())[0] in (400, 404), True, name)
    equal(_raw(site, f"/files/{hex64}/{token}/%62ase.txt".encode())[0] in (200, 404), True)
    equal(_raw(site, f"/FILES/{hex64}/{token}/base.txt".encode())[0], 404)
    equal(_raw(site, f"//files/{hex64}/{token}/base.txt".encode())[0], 404)


@test("H-03: links of any kind are never followed, whatever they point at")
def _():
    client = sites.client()
    site = sites.shared()
    other = sites.client()
    other_dir = other.upload("theirs.txt", b"theirs")["file"]["url"].split("/")[-3]
    base = _base(client)
    client.run(f"""
ln -s /proc/self/environ environ; ln -s /proc/1/root/etc/shadow shadow; ln -s /proc/self/fd/3 fd; ln -s /etc/passwd passwd
ln -s base.txt own; ln -s / root; mkdir real; echo x >real/x; ln -s real linked; ln -s ../{other_dir}/theirs.txt theirs
ln -s {site.root}/{other_dir} otherdir; ln base.txt hard; mkfifo fifo; ln -s /dev/zero zero
""", "bash")
    for name in ("environ", "shadow", "fd", "passwd", "own", "root/etc/passwd", "linked/x", "theirs", "otherdir/theirs.txt", "zero",
                 "fifo"):
        equal(client.download(f"{base}/{name}").status, 404, name)
    equal(client.download(f"{base}/real/x").status, 200)


@test("H-04: a sibling directory whose name begins with the victim's is not reachable")
def _():
    site = sites.shared()
    hex64, token = _base(sites.client()).rsplit("/", 2)[1:]
    sibling = f"{site.root}/{hex64}x"
    os.mkdir(sibling)
    with open(f"{sibling}/f", "w", encoding="ascii") as file:
        file.write("secret")
    for target in (f"/files/{hex64}x/f", f"/files/{hex64}x/{token}/f", f"/files/{hex64}/{token}/../../{hex64}x/f", f"/files/{hex64}/{token}/%2e%2e/{hex64}x/f"):
        equal(_raw(site, target.encode())[0], 404, target)


@test("names with newlines, quotes and bytes that are no text are served and cannot forge a header")
def _():
    client = sites.client()
    base = _base(client)
    names = [b"new\nline.html", b"cr\r\nSet-Cookie: x=1.html", b'quo"te.html', b"inv\xff\xfe.html", b"semi;colon.html", b"back\\slash.html"]
    client.run(f"for name in {names!r}:\n    open(name, 'wb').write(b'x')")
    for name in names:
        answer = client.download(base + "/" + urllib.parse.quote(name))
        check(answer.headers.get("Set-Cookie") is None, "a forged header")
        equal(answer.status, 200, repr(name))
        contains(answer.headers["Content-Disposition"], "attachment")


@test("a query string does not matter, and a token is not needed")
def _():
    client = sites.client()
    url = client.upload("q.txt", b"q")["file"]["url"]
    equal(client.download(url + "?download=1").body, b"q")
    equal(client.download(url + "?../../etc/passwd").status in (200, 404), True)


@test("a big file comes whole, a deleted one is 404")
def _():
    client = sites.client()
    result = client.run("head -c 50000000 /dev/zero >big", "bash")
    url = result["files"][0]["url"]
    equal(len(client.download(url).body), 50000000)
    client.run("rm big", "bash")
    equal(client.download(url).status, 404)

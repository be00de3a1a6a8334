"""/files: what is served, with which headers, and everything that must be 404 (H-03, H-04, H-05 and beyond)."""
import json
import os
import socket
import stat
import threading
import time

from front import FILE_KEY, Site, token

KEY = "0123456789abcdef" * 4
URL = f"/files/{KEY}/{token(KEY)}"
HTML = "text/html; charset=utf-8"  # nginx always adds it here
CANARY = b"canary-outside-the-sandbox"


def write(path, data=b"x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)


def started(**settings):
    site = Site(**settings)
    sandbox_dir = site.path("sandboxes/" + KEY)
    os.mkdir(sandbox_dir)
    write(sandbox_dir + "/a.txt", b"hello\n")
    write(sandbox_dir + "/sub/deep/b.csv", b"a,b\n1,2\n")
    write(site.path("sandboxes/.state/" + KEY + ".json"), CANARY)
    write(site.path("secret/key"), CANARY)
    os.chmod(site.path("sandboxes"), 0o711)
    site.start()
    return site, sandbox_dir


def served(checks):
    site, sandbox_dir = started()
    try:
        answer = site.request("GET", URL + "/a.txt")
        checks.equal("a file", (answer.status, answer.body), (200, b"hello\n"))
        checks.equal("over HTTPS", site.request("GET", URL + "/a.txt", tls=True).body, b"hello\n")
        checks.equal("in a sub-folder", site.request("GET", URL + "/sub/deep/b.csv").body, b"a,b\n1,2\n")
        checks.equal("a query string changes nothing", site.request("GET", URL + "/a.txt?v=/../x").body, b"hello\n")
        head = site.request("HEAD", URL + "/a.txt")
        checks.equal("HEAD", (head.status, head.header("content-length"), head.body), (200, "6", b""))
        for name, wanted in (("content-security-policy", "sandbox"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
                             ("cache-control", "private"), ("etag", '"'), ("accept-ranges", "bytes"), ("last-modified", "GMT")):
            checks.check(f"header {name}", wanted in answer.header(name), answer.headers)
        checks.check("no CORS", not any(name.startswith("access-control") for name in answer.headers))
        checks.check("no version of nginx", not any(c.isdigit() for c in answer.header("server")), answer.header("server"))
        etag = answer.header("etag")
        checks.equal("If-None-Match", site.request("GET", URL + "/a.txt", headers=[("If-None-Match", etag)]).status, 304)
        write(sandbox_dir + "/a.txt", b"changed\n")
        checks.equal("a changed file is seen at once", site.request("GET", URL + "/a.txt", headers=[("If-None-Match", etag)]).body, b"changed\n")
        part = site.request("GET", URL + "/a.txt", headers=[("Range", "bytes=2-4")])
        checks.equal("a range", (part.status, part.body, part.header("content-range")), (206, b"ang", "bytes 2-4/8"))
        checks.equal("the end of a file", site.request("GET", URL + "/a.txt", headers=[("Range", "bytes=-3")]).body, b"ed\n")
        checks.equal("a range past the end", site.request("GET", URL + "/a.txt", headers=[("Range", "bytes=99-")]).status, 416)
        with open(site.path("run/file-key.conf"), "w", encoding="ascii") as out:
            out.write(f'set $sandcgi_file_key "{"z" * 64}";\n')
        site.reload()
        expect_404(checks, "a link of an earlier FILE_SECRET", site.request("GET", URL + "/a.txt"))
        with open(site.path("run/file-key.conf"), "w", encoding="ascii") as out:
            out.write(f'set $sandcgi_file_key "{FILE_KEY}";\n')
        site.reload()
        with open(site.path("run/file-key.conf"), "w", encoding="ascii") as out:
            out.write(f'set $sandcgi_file_key "{"z" * 64}";\nset $sandcgi_old_links old;\n')
        site.reload()
        answer = site.request("GET", URL + "/a.txt?x=1", headers=[("Range", "bytes=2-4"), ("If-None-Match", '"x"')])
        params = dict(json.loads(answer.body)["params"])
        checks.equal("while links of an earlier FILE_SECRET work, a worker checks them",
                     [params.get(name) for name in ("SANDCGI_PLACE", "REQUEST_URI", "REQUEST_METHOD", "HTTP_RANGE", "HTTP_IF_NONE_MATCH", "SANDCGI_TENANT")],
                     ["file", URL + "/a.txt?x=1", "GET", "bytes=2-4", '"x"', ""])
        for target in (URL + "/../a.txt", URL + "/%2e%2e/a.txt", f"/files/{KEY}/a.txt", "/files/.state/x"):
            expect_404(checks, f"  but none of another form: {target}", site.request("GET", target))
        expect_404(checks, "  and no other method", site.request("DELETE", URL + "/a.txt"))
        with open(site.path("run/file-key.conf"), "w", encoding="ascii") as out:
            out.write(f'set $sandcgi_file_key "{FILE_KEY}";\nset $sandcgi_old_links old;\n')
        site.reload()
        checks.equal("  and nginx sends those of the new one", site.request("GET", URL + "/a.txt").body, b"changed\n")
        write(sandbox_dir + "/empty.bin", b"")
        answer = site.request("GET", URL + "/empty.bin")
        checks.equal("an empty file", (answer.status, answer.header("content-length")), (200, "0"))
        for name in ("mit leer.txt", "ä.txt", "a%2.txt", "q?x.txt", "h#h.txt", "plus+.txt", "semi;.txt", "quo'te\".txt", "..dots..txt", "...",
                     "new\nline.txt", "-dash", "$dollar", "back\\slash", ".hidden", "x" * 255):
            write(os.path.join(sandbox_dir, name), name.encode())
            quoted = "".join(chr(c) if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "-._~") else f"%{c:02X}" for c in name.encode())
            answer = site.request("GET", f"{URL}/{quoted}")
            checks.equal(f"the name {name[:20]!r}", (answer.status, answer.body), (200, name.encode()))
    finally:
        site.stop()


def disposition(checks):
    site, sandbox_dir = started()
    try:
        shown = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "PNG": "image/png",
                 "txt": "text/plain; charset=utf-8", "csv": "text/csv; charset=utf-8", "md": "text/markdown; charset=utf-8",
                 "json": "application/json", "mp4": "video/mp4"}
        loaded = {"html": HTML, "htm": HTML, "HTML": HTML, "xhtml": "application/xhtml+xml", "svg": "image/svg+xml",
                  "xml": "text/xml", "js": "text/javascript", "mjs": "text/javascript", "css": "text/css", "pdf": "application/pdf",
                  "swf": "application/octet-stream", "svgz": "application/octet-stream", "xsl": "application/octet-stream",
                  "zip": "application/zip", "unknown": "application/octet-stream", "png\n": "application/octet-stream"}
        for kinds, how in ((shown, "inline"), (loaded, "attachment")):
            for extension, kind in kinds.items():
                write(f"{sandbox_dir}/f.{extension}", b"<script>1</script>")
                answer = site.request("GET", f"{URL}/f.{extension}".replace("\n", "%0A"))
                got = answer.status, answer.header("content-type"), answer.header("content-disposition")
                checks.equal(f".{extension!s}".replace("\n", "\\n") + f" is {how}", got, (200, kind, how))
                checks.check("  in a CSP sandbox, not sniffed", "sandbox" in answer.header("content-security-policy")
                             and answer.header("x-content-type-options") == "nosniff", answer.headers)
        write(sandbox_dir + "/noextension", b"<html>")
        checks.equal("no extension: a download", site.request("GET", URL + "/noextension").header("content-disposition"), "attachment")
    finally:
        site.stop()


def expect_404(checks, name, answer):
    good = answer.status == 404 and CANARY not in answer.body and not answer.header("location")
    checks.check(f"404: {name}", good, (answer.status, answer.headers, answer.body[:200]))


def names_refused(checks):
    site, sandbox_dir = started()
    try:
        write(site.path("sandboxes/" + KEY + "0/a.txt"), CANARY)
        write(site.path("sandboxes/" + KEY[:-1] + "/a.txt"), CANARY)
        write(site.path("sandboxes/" + KEY.upper() + "/a.txt"), CANARY)
        write(site.path("sandboxes/" + "g" * 64 + "/a.txt"), CANARY)
        other = "f" * 64
        write(site.path(f"sandboxes/{other}/a.txt"), CANARY)
        write(sandbox_dir + "/sub/index.html")
        write(sandbox_dir + "/index.html")
        def place(folder):
            return f"{folder}/{token(KEY)}/a.txt"
        upper, dots = "/files/" + KEY.upper(), "/files/" + "." * 64
        for path in ("/files", "/files/", URL, URL + "/", URL + "/sub", URL + "/sub/", URL + "/sub/deep", URL + "/none", URL + "/a.txt/",
                     URL + "/a.txt/x", place("/files/" + KEY + "0"), place("/files/" + KEY[:-1]), place(upper), place(dots), place("/files/" + "g" * 64),
                     f"/files/{KEY}/a.txt", f"/files/{KEY}/{token(other)}/a.txt", f"/files/{KEY}/{token(KEY)[:-1]}/a.txt", f"/files/{KEY}/{token(KEY)}A/a.txt",
                     f"/files/{other}/{token(KEY)}/a.txt", f"/files/{KEY}//a.txt", f"/files/{KEY}/a.txt?expires=9999999999&sig={token(KEY)}",
                     "/files/" + "." * 16 + "/x", "/files/%2e%2e/x", "/files/" + "%2e" * 64 + "/a.txt",
                     place(f"/FILES/{KEY}"), place(f"/files//{KEY}"), place(f"//files/{KEY}"), f"{URL}//a.txt", f"{URL}/./a.txt", f"{URL}/sub/../a.txt",
                     f"{URL}/sub%2f..%2fa.txt", f"{URL}/sub%2Fdeep/b.csv", place(f"/files%2f{KEY}"), f"{URL}%2fa.txt", f"/files/{KEY}%2f{token(KEY)}/a.txt", f"{URL}/%2e/a.txt",
                     f"{URL}/../../{other}/a.txt", f"{URL}/../{token(KEY)}/a.txt", f"{URL}/%2e%2e/%2e%2e/{other}/a.txt", f"{URL}/..%2f{other}/a.txt", f"{URL}/..", f"{URL}/../..",
                     f"{URL}/..%2f..%2fsecret/key", f"{URL}/../../secret/key", f"{URL}/%252e%252e/secret/key", f"{URL}/..%5c{other}%5ca.txt",
                     f"/files/.state/{KEY}.json", "/files/.staging/x", "/files/.runs/x", f"{URL}/../.state/{KEY}.json", f"{URL}/" + "x" * 256,
                     f"{URL}/" + "d/" * 1500 + "x", place(f"/files/{KEY}%0a"), place(f"/files/{KEY}%00"), place(f"/files/%30{KEY[1:]}")):
            answer = site.request("GET", path)
            if answer.status == 400:  # nginx refuses to parse some of them at all; nothing was looked up
                checks.check(f"400: {path[:60]}", CANARY not in answer.body)
            else:
                expect_404(checks, path if len(path) < 100 else path[:97] + "...", answer)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "MKCOL", "TRACE"):
            answer = site.request(method, URL + "/a.txt", b"x" if method in ("POST", "PUT") else b"")
            checks.check(f"{method} is 404 (TRACE: 405), the file stays", answer.status == (405 if method == "TRACE" else 404)
                         and site.request("GET", URL + "/a.txt").body == b"hello\n", answer.status)
        expect_404(checks, "POST with a large body", site.request("POST", URL + "/a.txt", b"x" * 5000))
        missing, refused = site.request("GET", URL + "/none"), site.request("GET", f"/files/{'e' * 64}/{token('e' * 64)}/a.txt")
        checks.check("no token needed, none helps", site.request("GET", URL + "/none", token=site.token).status == 404)
        same = [{k: v for k, v in answer.headers.items() if k != "date"} for answer in (missing, refused)]
        checks.check("a missing file and a missing sandbox look the same", same[0] == same[1] and missing.body == refused.body, same)
    finally:
        site.stop()


def links_refused(checks):
    site, sandbox_dir = started()
    try:
        other = "f" * 64
        write(site.path(f"sandboxes/{other}/a.txt"), CANARY)
        links = {"environ": "/proc/self/environ", "shadow": "/proc/1/root/etc/shadow", "fd": "/proc/self/fd/3", "passwd": "/etc/passwd",
                 "inside": "a.txt", "up": "../" + other + "/a.txt", "dir": site.path("secret"), "insidedir": "sub", "root": "/",
                 "dangling": "/nowhere", "self": "self", "key": site.path("secret/key"), "link.png": site.path("secret/key")}
        for name, target in links.items():
            os.symlink(target, os.path.join(sandbox_dir, name))
        for path in [*links, "dir/key", "insidedir/deep/b.csv", "root/etc/passwd", "root/proc/self/environ"]:
            expect_404(checks, f"link {path}", site.request("GET", f"{URL}/{path}"))
        os.symlink(site.path("sandboxes/" + other), site.path("sandboxes/" + "e" * 64))
        expect_404(checks, "a linked sandbox", site.request("GET", f"/files/{'e' * 64}/{token('e' * 64)}/a.txt"))

        os.mkfifo(sandbox_dir + "/fifo")
        began = time.monotonic()
        expect_404(checks, "a FIFO", site.request("GET", URL + "/fifo"))
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(sandbox_dir + "/sock")
            expect_404(checks, "a socket", site.request("GET", URL + "/sock"))
        if site.as_root:
            os.mknod(sandbox_dir + "/zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            expect_404(checks, "a device", site.request("GET", URL + "/zero"))
            write(sandbox_dir + "/closed.txt", b"c")
            os.chmod(sandbox_dir + "/closed.txt", 0)
            expect_404(checks, "a file nginx may not read", site.request("GET", URL + "/closed.txt"))
        else:
            checks.skip("404: a device", "needs root")
        checks.check("none of them made nginx wait", time.monotonic() - began < 10)
    finally:
        site.stop()


def swaps(checks):
    """A program swaps a file and a folder for links while they are fetched: what is outside is never answered."""
    site, sandbox_dir = started()
    try:
        write(site.path("secret/b.csv"), CANARY)
        ends = time.monotonic() + 4

        def swap(name, target, make):
            while time.monotonic() < ends:
                make(f"{sandbox_dir}/{name}.real")
                os.rename(f"{sandbox_dir}/{name}.real", f"{sandbox_dir}/{name}")
                time.sleep(0.001)
                os.symlink(target, f"{sandbox_dir}/{name}.link")
                if os.path.isdir(f"{sandbox_dir}/{name}") and not os.path.islink(f"{sandbox_dir}/{name}"):
                    os.rename(f"{sandbox_dir}/{name}", f"{sandbox_dir}/{name}.old")
                    os.rename(f"{sandbox_dir}/{name}.link", f"{sandbox_dir}/{name}")
                    time.sleep(0.001)
                    os.unlink(f"{sandbox_dir}/{name}")
                    os.rename(f"{sandbox_dir}/{name}.old", f"{sandbox_dir}/{name}.real")
                else:
                    os.rename(f"{sandbox_dir}/{name}.link", f"{sandbox_dir}/{name}")
                    time.sleep(0.001)

        def make_dir(path):
            if not os.path.isdir(path):
                write(path + "/b.csv", b"good")

        threads = [threading.Thread(target=swap, args=("swap.txt", site.path("secret/key"), lambda path: write(path, b"good"))),
                   threading.Thread(target=swap, args=("swapdir", site.path("secret"), make_dir))]
        for thread in threads:
            thread.start()
        counts, bad = {}, []
        while time.monotonic() < ends:
            for path in ("swap.txt", "swapdir/b.csv"):
                answer = site.request("GET", f"{URL}/{path}")
                counts[path, answer.status] = counts.get((path, answer.status), 0) + 1
                if CANARY in answer.body or answer.status not in (200, 404) or answer.status == 200 and answer.body not in (b"good", b""):
                    bad.append((path, answer.status, answer.body[:80]))
        for thread in threads:
            thread.join()
        checks.check("swapped links never lead outside", not bad, bad[:5])
        checks.check("both states were met", all(counts.get((path, status)) for path in ("swap.txt", "swapdir/b.csv") for status in (200, 404)), counts)
    finally:
        site.stop()


def logs(checks):
    site, sandbox_dir = started()
    try:
        os.symlink("/etc/passwd", sandbox_dir + "/link")
        for path in (URL + "/a.txt?signature=topsecret", URL + "/none", URL + "/link", URL + "/sub", "/files/" + KEY.upper() + "/a.txt", f"//files//{KEY}/a.txt",
                     f"/files/{KEY}/{'f' * 64}.txt", f"/x/{KEY}", f"/files/%30{KEY[1:]}/a.txt", URL + "/../" + "f" * 64 + "/x"):
            site.request("GET", path)
        text = (site.log("access.log", "/none") + site.log("nginx-error.log")).lower()
        checks.check("file requests are logged", f"get /files/{KEY[:8]}.../a.txt" in text, text)
        checks.check("the token of a file URL is nowhere", token(KEY).lower() not in text and token(KEY)[:8].lower() not in text, text)
        checks.check("the key of a file URL is nowhere in full", KEY not in text and KEY[9:40] not in text and "f" * 20 not in text, text)
        checks.check("query strings are not logged", "topsecret" not in text, text)
    finally:
        site.stop()


def archives(checks):
    site, _ = started()
    try:
        checks.equal("an archive reaches a worker", site.request("GET", f"/archives/{KEY}/files.zip").status, 200)
        values = dict(site.responder.requests[-1]["params"])
        checks.equal("which counts it", (values["SANDCGI_PLACE"], values.get("SANDCGI_TENANT", "")), ("archive", ""))
        checks.equal("another method is refused", site.request("PUT", f"/archives/{KEY}/files.zip").status, 405)
    finally:
        site.stop()


def signed_url(name, expires, of=None):
    return f"/files/{KEY}/{name}?expires={expires}&sig={token(f'{expires} {KEY}/{of or name}')}"


def signed(checks):
    site, sandbox_dir = started(SIGNED_URLS="1")
    try:
        write(sandbox_dir + "/ä b.txt", b"named")
        later, past = int(time.time()) + 100, int(time.time()) - 2
        checks.equal("a signed link", site.request("GET", signed_url("a.txt", later)).body, b"hello\n")
        checks.equal("its bytes are signed, however they are written",
                     site.request("GET", signed_url("%C3%A4%20b.txt", later, "ä b.txt")).body, b"named")
        good = signed_url("a.txt", later)
        for name, url in (("expired", signed_url("a.txt", past)), ("of another file", signed_url("a.txt", later, "sub/deep/b.csv")),
                          ("without a signature", f"/files/{KEY}/a.txt"), ("with more behind it", good + "&x=1"), ("with more before it", good.replace("?", "?x=1&")),
                          ("of another time", good.replace("expires=", "expires=1")), ("of a missing file", signed_url("none", later, "other")),
                          ("with the token of unsigned links", f"{URL}/a.txt"), ("with expires=0", signed_url("a.txt", 0)),
                          ("of a folder, not signed", f"/files/{KEY}/sub"), ("with padding", good + "==")):
            answer = site.request("GET", url)
            checks.check(f"403: a link {name}", answer.status == 403 and b"altered or has expired" in answer.body, answer.status)
        expect_404(checks, "a signed link to nothing", site.request("GET", signed_url("none", later)))
        expect_404(checks, "a signed link to a folder", site.request("GET", signed_url("sub", later)))
        expect_404(checks, "POST to a signed link", site.request("POST", good))
    finally:
        site.stop()


GROUPS = [served, signed, disposition, names_refused, links_refused, swaps, logs, archives]

"""Links: uploads by ticket (create_upload), signed download links, files fetched by URL (import_url); H-02, H-55."""
import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import zlib

import procs
import sites
import stdio
from harness import check, contains, equal, test, wait_until

MIB = 1024 * 1024


def _signed():
    """A server whose download links are signed, with little room for a conversation."""
    return sites.with_settings(SANDBOX_URL_TTL="1h", SANDBOX_QUOTA="4m")


def _narrow():
    """One that takes small files, fetches none, and whose download links are signed for a moment."""
    return sites.with_settings(SANDBOX_URL_TTL="1s", SANDBOX_UPLOAD_MAX="1m", SANDBOX_IMPORT="false")


SIZE_MAX = (1 << 31) + 4097


def _wide():
    """One that takes large files, two at a time."""
    return sites.with_settings(nginx={"UPLOAD_CONNS": "2"}, SANDBOX_UPLOAD_MAX=str(SIZE_MAX), SANDBOX_QUOTA="3g")


@test("nginx and a worker take a request for the same, however its path is written", core=True)
def _():
    client = sites.client().fresh()
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for path in ("/archives/../mcp", "/uploads/../mcp", "/%6dcp", "/files/../mcp?x=/archives/y"):
        equal(client.http("POST", path, ping, client.headers()).json(), {"jsonrpc": "2.0", "id": 1, "result": {}}, path)
    for path in ("/%61rchives/healthz", "/archives/healthz", "/%61rchives/x", "/archives/mcp", "/archives/%2e/uploads/x"):
        answer = client.http("GET", path)
        check(answer.status in (400, 403, 404) and b"link" in answer.body, f"{path}: {answer.status} {answer.body}")
    equal(client.http("GET", "/%68ealthz").json(), {"status": "ok"})


def _link(client, name="big.bin", **more):
    return client.structured("create_upload", {"conversationId": client.conversation, "filename": name} | more)


def _put(client, url, body, headers=None, method="PUT"):
    parts = urllib.parse.urlsplit(url)
    return client.fresh().http(method, f"{parts.path}?{parts.query}", body, headers)


def _pieces(count, size=MIB):
    """A body whose size is announced, but which is never held whole."""
    piece = bytes(range(256)) * (size // 256)
    return (piece for _ in range(count))


def _inside(site):
    """What lies about in the folders of uploads, and the files without a name that processes have open there."""
    names = list({path for pid in site.processes() for path in procs.open_files(pid) if path.startswith(f"{site.root}/.staging/")})
    for folder in (".uploads", ".staging"):
        path = f"{site.root}/{folder}"
        names += os.listdir(path) if os.path.isdir(path) else []
    return names


def _nothing_left(site):
    """The process that has stored a body closes its file behind the answer."""
    wait_until(lambda: _inside(site) == [], 10, "nothing is left")


def _tickets(site):
    return len(os.listdir(f"{site.root}/.tickets"))


def _raw(site, head):
    """A TLS connection with a request's head sent."""
    context = ssl.create_default_context(cafile=sites.certificate()[0])
    sock = context.wrap_socket(socket.create_connection(("localhost", site.https_port), 20), server_hostname="localhost")
    sock.sendall(head.encode())
    return sock


def _head(url, size):
    parts = urllib.parse.urlsplit(url)
    return f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {size}\r\n\r\n"


def _status(site, url, size):
    """What is answered to the mere announcement of a body."""
    with _raw(site, _head(url, size)) as sock:
        return sock.recv(4096).split()[1]


@test("a file that was PUT to its link is the sandbox user's, and there for the program and behind its URL", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    link = _link(client, "sub/\u00fcber #1.bin")
    equal((link["method"], link["maxBytes"]), ("PUT", 2 * 1024 * MIB))
    check(0 < link["expiresAt"] - time.time() <= 900, f"expires at {link['expiresAt']}")
    answer = _put(client, link["url"], b"x" * 100_000)
    equal(answer.status, 201, answer.body)
    file = answer.json()
    equal((file["name"], file["size"]), ("sub/\u00fcber #1.bin", 100_000))
    equal(client.download(file["url"]).body, b"x" * 100_000)
    equal(client.run("stat -c '%u %g %a %s' sub/*", "bash")["stdout"].split()[2:], ["644", "100000"])
    words = client.run("stat -c '%u %g' sub/*; id -u; id -g", "bash")["stdout"].split()
    equal(words[:2], words[2:], "owner and user")
    _nothing_left(site)


@test("an upload link is good once; the second PUT is 410 and changes nothing", core=True)
def _():
    client = sites.client()
    link = _link(client)
    equal(_put(client, link["url"], b"first").status, 201)
    answer = _put(client, link["url"], b"second")
    equal(answer.status, 410)
    contains(answer.json()["error"], "used")
    equal(client.run("cat big.bin", "bash")["stdout"], "first")


@test("of several PUTs at once to one link one is taken, the others are told before they send anything")
def _():
    client = sites.client()
    link = _link(client)
    socks = [_raw(sites.shared(), _head(link["url"], 6)) for _ in range(4)]
    refused = {}

    def answered():
        for sock in set(socks) - set(refused):
            sock.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                refused[sock] = sock.recv(100).split()[1]
        return len(refused) == 3
    wait_until(answered, 10, "three are told")
    equal([*refused.values()], [b"429"] * 3)
    taken = (set(socks) - set(refused)).pop()
    taken.settimeout(20)
    taken.sendall(b"body 1")
    equal(taken.recv(100).split()[1], b"201")
    equal(_put(client, link["url"], b"late").status, 410)


@test("concurrent uploads are limited; a further one is told to try again, and then succeeds")
def _():
    site = _wide()
    client = sites.new_conversation(site.client())
    links = [_link(client, f"f{n}")["url"] for n in range(3)]
    socks = [_raw(site, _head(url, 2 * MIB)) for url in links[:2]]
    for sock in socks:
        sock.sendall(b"x" * MIB)
    wait_until(lambda: len(_inside(site)) == 2, 10, "both have begun")
    answer = _put(client, links[2], b"late")
    equal((answer.status, answer.headers["Retry-After"]), (429, "1"))
    contains(answer.json()["error"], "too many uploads")
    socks[0].close()
    wait_until(lambda: len(_inside(site)) == 1, 10, "one broke off")
    equal(_put(client, links[2], b"late").status, 201)
    equal(_put(client, links[0], b"again").status, 201)
    socks[1].sendall(b"x" * MIB)
    equal(socks[1].recv(100).split()[1], b"201")


@test("an empty file can be uploaded by link, and one of unknown length (chunked)")
def _():
    client = sites.client()
    equal(_put(client, _link(client, "empty")["url"], b"").status, 201)
    equal(_put(client, _link(client, "chunked")["url"], _pieces(3)).status, 201)
    equal(client.run("stat -c %s empty chunked", "bash")["stdout"].split(), ["0", str(3 * MIB)])


@test("an upload link that was altered, moved or made up is 403, with another method 405", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    one, two = _link(client, "one")["url"], _link(client, "two")["url"]
    before = _tickets(site)
    ticket = re.search(r"/uploads/([0-9a-f]{32})", one).group(1)
    digit = "1" if one[-1] == "0" else "0"
    for url in (one[:-1] + digit, one + "0", one.split("?")[0], one.replace("expires=", "expires=9"), one.split("&")[0],
                two.split("?")[0] + "?" + one.split("?")[1], one.replace(ticket, "0" * 32),
                one.replace(ticket, ticket + "/x"), one + "&x=1", one.replace("/uploads/", "/uploads//")):
        equal(_put(client, url + ("" if "?" in url else "?"), b"evil").status, 403, url)
    equal(_put(client, one, None, method="GET").status, 405)
    equal(_put(client, one, b"x", method="POST").status, 405)
    equal(_tickets(site), before, "tickets")
    _nothing_left(site)
    equal(_put(client, one, b"fine").status, 201)


@test("a body that has not the announced size is refused before it is sent, and the link stays good")
def _():
    client = sites.client()
    site = sites.shared()
    link = _link(client, "exact", size=5)
    equal(link["maxBytes"], 5)
    for size, status in ((4, b"400"), (6, b"413"), (3 * 1024 * MIB, b"413")):
        with _raw(site, _head(link["url"], size)) as sock:  # nothing of the body
            equal(sock.recv(4096).split()[1], status, size)
    equal(_put(client, link["url"], _pieces(1)).status, 413, "chunked")
    _nothing_left(site)
    equal(_put(client, link["url"], b"12345").status, 201)


@test("a body over SANDBOX_UPLOAD_MAX is refused, also one of unknown length, and nothing is left", core=True)
def _():
    site = _narrow()
    client = sites.new_conversation(site.client())
    contains(client.tool_error("create_upload", {"conversationId": "c", "filename": "f", "size": MIB + 1}), "size")
    link = _link(client)
    with _raw(site, _head(link["url"], MIB + 1)) as sock:
        equal(sock.recv(4096).split()[1], b"413")
    try:
        equal(_put(client, link["url"], _pieces(3)).status, 413)
    except (ConnectionError, ssl.SSLError):
        pass  # it hung up while we were still sending
    _nothing_left(site)
    # nginx may still be reading what it refused: 429 until that connection ends.
    wait_until(lambda: _put(client, link["url"], _pieces(1), {"Content-Length": str(MIB)}).status == 201, 20, "the link is good for another try")


@test("an upload for which the conversation has no room is refused before it is sent, one of unknown length behind it")
def _():
    site = _signed()
    client = sites.new_conversation(site.client())
    link = _link(client)
    with _raw(site, _head(link["url"], 5 * MIB)) as sock:
        equal(sock.recv(4096).split()[1], b"413")
    answer = _put(client, link["url"], _pieces(5))
    equal(answer.status, 413)
    contains(answer.json()["error"], "SANDBOX_QUOTA")
    _nothing_left(site)
    wait_until(lambda: _put(client, link["url"], _pieces(2)).status == 201, 20, "nginx has ended the refused upload: the link is good again")


@test("an upload that breaks off leaves nothing, and its link is good for another try", core=True)
def _():
    client = sites.client()
    site = sites.shared()
    link = _link(client)
    with _raw(site, _head(link["url"], 10 * MIB)) as sock:
        sock.sendall(b"x" * 5 * MIB)
        wait_until(lambda: _inside(site), 10, "what has come is stored")
    _nothing_left(site)
    equal(client.run("ls -A", "bash")["stdout"], "")
    equal(_put(client, link["url"], b"again").status, 201)


@test("an upload link expires: 410, and nothing is stored")
def _():
    site = sites.with_settings(SANDBOX_UPLOAD_TTL="3s")
    client = sites.new_conversation(site.client())
    link = _link(client)
    wait_until(lambda: time.time() >= link["expiresAt"], 10, "it has expired")
    answer = _put(client, link["url"], b"late")
    equal(answer.status, 410)
    contains(answer.json()["error"], "expired")
    # What has begun in time may end later.
    link = _link(client)
    with _raw(site, _head(link["url"], 4)) as sock:
        sock.sendall(b"sl")
        wait_until(lambda: time.time() >= link["expiresAt"] + 1, 10, "it has expired")
        sock.sendall(b"ow")
        equal(sock.recv(4096).split()[1], b"201")


@test("H-02: a link that a program planted where an upload goes is replaced or refused, its target unchanged", core=True)
def _():
    client = sites.client()
    secret = f"{sites.shared().folder}/upload-secret"
    with open(secret, "w", encoding="ascii") as file:
        file.write("untouched")
    os.chmod(secret, 0o666)
    client.run(f"ln -s {secret} out; ln -s {os.path.dirname(secret)} dir; mkdir folder", "bash")
    equal(_put(client, _link(client, "dir/upload-secret")["url"], b"evil").status, 400)
    equal(_put(client, _link(client, "folder")["url"], b"evil").status, 400)
    equal(_put(client, _link(client, "out")["url"], b"evil").status, 201)
    with open(secret, encoding="ascii") as file:
        equal(file.read(), "untouched")
    equal(client.run("test -L out || cat out", "bash")["stdout"], "evil")
    _nothing_left(sites.shared())


@test("create_upload names what is wrong with its arguments")
def _():
    client = sites.client()
    good = {"conversationId": client.conversation, "filename": "f"}
    contains(client.tool_error("create_upload", {"conversationId": good["conversationId"]}), "filename")
    for name in ("../x", "/etc/passwd", "", "a/", "%2e%2e/x"):
        contains(client.tool_error("create_upload", good | {"filename": name}), "filename", name)
    for size in (-1, "five", 1.5, 2 * 1024 * MIB + 1):
        contains(client.tool_error("create_upload", good | {"size": size}), "size", size)


def _peak(pid):
    """The most memory that it had; 0 when it has gone."""
    return int((procs.status(pid, "VmHWM") or "0").split()[0]) * 1024


def _memory_of_upload(client, site, body, size):
    """Upload of big.bin: the answer, and by how much the peak of any process of the server grew."""
    _put(client, _link(client, "warm-up")["url"], b"x" * MIB)
    site.settled_workers()
    pids = site.processes()
    before = {pid: _peak(pid) for pid in pids}
    answer = _put(client, _link(client)["url"], body, {"Content-Length": str(size)})
    equal(answer.status, 201, answer.body)
    check(site.broker() in pids, "the broker has ended")
    return answer.json(), max(_peak(pid) - before[pid] for pid in pids)


def _takes_flat_memory(site):
    client = sites.new_conversation(site.client())
    _, grown = _memory_of_upload(client, site, _pieces(200), 200 * MIB)
    equal(client.run("stat -c %s big.bin", "bash")["stdout"].split(), [str(200 * MIB)])
    check(grown < 16 * MIB, f"grew by {grown // 1024} KiB")


class _Numbered:
    """A body of so many bytes, each MiB of it different, of which one piece exists at a time; its checksum when it was read."""

    def __init__(self, size):
        self.size, self.checksum = size, 0

    def __iter__(self):
        rest = bytes(range(256)) * (MIB // 256 - 1) + bytes(248)
        for at in range(0, self.size, MIB):
            piece = (at.to_bytes(8, "big") + rest)[:self.size - at]
            self.checksum = zlib.crc32(piece, self.checksum)
            yield piece


def _checksum(path):
    checksum = 0
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            checksum = zlib.crc32(piece, checksum)
    return checksum


@test("a large upload takes no memory that grows with it", timeout=180)
def _():
    _takes_flat_memory(sites.shared())


@test("an upload of more than 2 GiB arrives byte for byte in flat memory, and one byte above the limit is refused", timeout=300)
def _():
    size, site = SIZE_MAX, _wide()
    client = sites.new_conversation(site.client())
    equal(_status(site, _link(client)["url"], size + 1), b"413")
    contains(client.tool_error("create_upload", {"conversationId": "c", "filename": "f", "size": size + 1}), str(size))
    body = _Numbered(size)
    file, grown = _memory_of_upload(client, site, body, size)
    equal(file["size"], size)
    path = f"{site.root}/{re.search('[0-9a-f]{64}', file['url']).group()}/big.bin"
    equal(os.stat(path).st_size, size)
    equal(_checksum(path), body.checksum)
    check(grown < 16 * MIB, f"grew by {grown // 1024} KiB")
    _nothing_left(site)


@test("two uploads that each fit alone, but not together: one is refused with the sizes, and fits when the other has broken off", core=True)
def _():
    site = _signed()
    client = sites.new_conversation(site.client())
    first, second = (_link(client, name)["url"] for name in ("one", "two"))
    with _raw(site, _head(first, 3 * MIB)) as sock:
        sock.sendall(b"x" * MIB)
        wait_until(lambda: _inside(site), 10, "the first is on its way")
        equal(_status(site, second, 2 * MIB), b"413", "before it is sent")
        answer = _put(client, second, _pieces(2))
        equal(answer.status, 413, "of unknown length")
        contains(answer.json()["error"], "3.0 MiB are on their way")
        contains(client.tool_error("write_file", {"conversationId": client.conversation, "filename": "f", "text": "x" * 2 * MIB}), "on their way")
        equal(_put(client, _link(client, "small")["url"], b"x" * (MIB // 2)).status, 201)
    statuses = []  # 429 until the worker that refused has ended its request
    wait_until(lambda: statuses.append(_put(client, second, b"x" * 2 * MIB).status) or statuses[-1] == 201, 20, "the room is free")


@test("an upload goes on over a restart of the broker, and has its room again", timeout=60)
def _():
    site = _signed()
    client = sites.new_conversation(site.client())
    with _raw(site, _head(_link(client, "one")["url"], 3 * MIB)) as sock:
        sock.sendall(b"x" * MIB)
        wait_until(lambda: _inside(site), 10, "it is on its way")
        before = site.broker()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: site.broker() not in (None, before), 20, "there is another")
        site.wait_healthy()
        two = _link(client, "two")["url"]
        sock.sendall(b"x" * MIB)

        def has_room():
            with contextlib.suppress(TimeoutError):  # the other has begun to wait for its body
                return _status(site, two, 2 * MIB) == b"413"
            return False
        wait_until(has_room, 50, "it has its room again")
        sock.sendall(b"x" * MIB)
        equal(sock.recv(100).split()[1], b"201")


@test("with UPLOADS=file nginx stores the body: also in flat memory, also once, and nothing is left", timeout=180)
def _():
    site = sites.with_settings(nginx={"UPLOADS": "file"})
    _takes_flat_memory(site)
    check(os.path.exists(f"{site.root}/.uploads"), "nginx made no folder")
    client = sites.new_conversation(site.client())
    link = _link(client, "f", size=4)
    with _raw(site, _head(link["url"], 4)) as sock:
        sock.sendall(b"ab")
    wait_until(lambda: _status(site, link["url"], 5) == b"413", 10, "another size is refused, once the one that broke off is over")
    statuses = []  # 429 until the worker that refused has ended its request
    wait_until(lambda: statuses.append(_put(client, link["url"], b"abcd").status) or statuses[-1] != 429, 10, "the link is free")
    equal(statuses[-1], 201)
    equal(_put(client, link["url"], b"abcd").status, 410)
    _nothing_left(site)
    equal(client.run("cat f", "bash")["stdout"], "abcd")


# ---- signed download links ----

@test("with SANDBOX_URL_TTL links are signed: Range and ETag work, altered, moved and unsigned ones are 403 (H-06, H-31)", core=True)
def _():
    client = sites.new_conversation(_signed().client())
    url = client.upload("a b/t\u00e4ble.csv", b"0123456789")["file"]["url"]
    other = client.upload("other.csv", b"other")["file"]["url"]
    path, query = url.split("?")
    first = client.download(url)
    equal((first.status, first.body, first.headers["Referrer-Policy"]), (200, b"0123456789", "no-referrer"))
    equal(client.download(url, {"Range": "bytes=2-4"}).body, b"234")
    equal(client.download(url, {"If-None-Match": first.headers["ETag"]}).status, 304)
    equal(client.download(url, method="HEAD").status, 200)
    last = "A" if url[-1] != "A" else "Q"
    for bad in (path, url[:-1] + last, url[:-1] + chr(ord(url[-1]) + 1), url[:-2] + "==", url + "0", path + "?" + other.split("?")[1], other.split("?")[0] + "?" + query,
                url.replace("expires=", "expires=1"), path + "?" + query.split("&")[0], url + "&x=1", url.replace("t%C3%A4ble", "none")):
        answer = client.download(bad)
        equal((answer.status, answer.headers["Referrer-Policy"]), (403, "no-referrer"), bad)
    equal(client.download(url, method="POST").status, 404)


@test("all links are signed: of runs and uploads, also when they are read again later")
def _():
    client = sites.new_conversation(_signed().client())
    run = client.run("print('x', file=open('made.txt', 'w'))")
    urls = [run["files"][0]["url"], _put(client, _link(client, "put.txt")["url"], b"x").json()["url"]]
    for url in urls:
        equal(client.download(url).status, 200, url)
        contains(url, "&sig=")


@test("a signed link that has expired is 403", core=True)
def _():
    client = sites.new_conversation(_narrow().client())
    url = client.upload("f.txt", b"x")["file"]["url"]
    expires = int(re.search(r"expires=(\d+)", url).group(1))
    wait_until(lambda: time.time() >= expires + 1, 10, "it has expired")
    equal(client.download(url).status, 403)


@test("H-10: no log holds a ticket or a signature")
def _():
    client = sites.new_conversation(_signed().client())
    url = client.upload("f.txt", b"x")["file"]["url"]
    client.download(url)
    client.download(url + "0")
    link = _link(client)["url"]
    for body in (b"x", b"y"):
        _put(client, link, body)
    _put(client, link + "0", b"z")
    words = [text.split("sig=")[1] for text in (url, link)] + [re.search(r"/uploads/([0-9a-f]{32})", link).group(1)]
    folder = f"{_signed().folder}/log"
    for name in os.listdir(folder):
        with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
            text = file.read()
        for word in words:
            check(word not in text, f"{word} is in {name}")


@test("curl uploads by link as the README says")
def _():
    client = sites.client()
    link = _link(client, "curl.bin")
    done = subprocess.run(["curl", "-sS", "--cacert", sites.certificate()[0], "-T", "-", link["url"]], input=b"y" * 3 * MIB,
                          capture_output=True, check=False)
    contains(done.stdout.decode(), '"size":3145728', done.stderr)


# ---- import_url ----

@test("H-55: import_url fetches from no private, local, metadata or translated address, however it is written", core=True)
def _():
    client = sites.client()
    good = {"conversationId": client.conversation, "filename": "f"}
    hosts = ("127.0.0.1", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "0x7f000001", "0", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1",
             "100.64.0.1", "169.254.1.1", "169.254.169.254", "0xa9fea9fe", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
             "224.0.0.1", "255.255.255.255", "198.18.0.1", "203.0.113.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]",
             "[fe80::1]", "[fd00:ec2::254]", "[fc00::1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2001:db8::1]", "[ff02::1]",
             "localhost", "LOCALHOST.", "127.0.0.1.", socket.gethostname())
    for host in hosts:
        text = client.tool_error("import_url", good | {"url": f"https://{host}/x"})
        unknown = host in ("LOCALHOST.", "127.0.0.1.", socket.gethostname()) and "not known" in text  # where no name server knows them
        check("only public servers" in text or unknown, f"{host}: {text}")
    equal(client.run("ls -A", "bash")["stdout"], "")
    _nothing_left(sites.shared())


@test("import_url takes no other scheme, port or credentials, and names what is wrong without repeating the URL (H-40, H-55)")
def _():
    client = sites.client()
    good = {"conversationId": client.conversation, "url": "https://127.0.0.1/x"}
    for url in ("http://example.org/secret", "file:///secret", "ftp://example.org/secret", "secret", "https://", "https://u:secret@example.org/",
                "https://example.org/secret x", "https:///secret", "https://example.org\\secret\n", "gopher://x/secret"):
        text = client.tool_error("import_url", good | {"url": url})
        contains(text, "url", url)
        check("secret" not in text, text)
    for name in ("../x", "/etc/passwd", "a/"):
        contains(client.tool_error("import_url", good | {"filename": name}), "filename", name)
    for path in ("", "/", "/..", "/a/", "/%2e%2e", "/a%2fb"):
        contains(client.tool_error("import_url", good | {"url": f"https://127.0.0.1{path}"}), "filename", path)
    contains(client.tool_error("import_url", {"conversationId": good["conversationId"]}), "url")


@test("SANDBOX_IMPORT=false switches import_url off", core=True)
def _():
    client = sites.new_conversation(_narrow().client())
    refused = client.request("tools/call", {"name": "import_url", "arguments": {"conversationId": "c", "url": "https://8.8.8.8/x"}})
    contains(refused.json()["error"]["message"], "import_url is switched off")


@test("no certificate of a server in the same house helps: its address is refused before a byte is sent")
def _():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(1)
        sock.settimeout(1)
        client = sites.client()
        client.tool_error("import_url", {"conversationId": client.conversation, "url": f"https://localhost:{sock.getsockname()[1]}/x"})
        try:
            sock.accept()
        except TimeoutError:
            return
    check(False, "it connected")


@test("the process that fetches is confined while it fetches", timeout=120)
def _():
    client = sites.client()
    seen, over = [], threading.Event()

    def watch():
        while not over.is_set() and not any(seen):
            seen.extend(procs.is_confined(pid) for pid in procs.commands("fetch"))
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(200): # one lives for milliseconds where the internet is out of reach
        client.tool_error("import_url", {"conversationId": client.conversation, "url": "https://sandcgi.invalid/x"})
        if any(seen):
            break
    over.set()
    watcher.join()
    check(any(seen), f"seen {len(seen)} times, never confined")


@test("stdio has no web server: create_upload is not offered there, import_url is")
def _():
    client = stdio.Stdio(sites.shared().config)
    client.initialize()
    names = [tool["name"] for tool in client.result("tools/list")["tools"]]
    check("create_upload" not in names, "offered")
    check("import_url" in names, "not offered")

"""Behind a tunnel: a stand-in of cloudflared sends what that one sends, and ends a request that has been silent for long."""
import contextlib
import os
import queue
import select
import shutil
import socket
import ssl
import threading
import time

import runs
import sites
from harness import Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import Client, end_run
from streams import open_modern

try:
    import h2.config
    import h2.connection
    import h2.errors
    import h2.events
    import h2.exceptions
except ImportError:
    h2 = None

PUBLIC = "sandbox.example.org"
ADDRESS = "198.51.100.7"
IDLE_S = 18  # 100 s at Cloudflare; keep-alives come every 15 s
HEAD_LEN, GOAWAY = 9, 7  # of frames of HTTP/2


class Tunnel:
    """Takes requests of one connection each, adds the headers of cloudflared, and passes bytes on as they come."""

    def __init__(self, site):
        self.site = site
        self.address = ADDRESS
        self.first_byte = []  # seconds from each request to the first byte of its answer
        self.cut = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        at_test_end(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.site.http_port)) as origin:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            first, _, rest = head.partition(b"\r\n")
            ours = "".join(f"{name}: {value}\r\n" for name, value in self.added().items())
            origin.sendall(first + b"\r\n" + ours.encode() + rest)
            began, last = time.monotonic(), time.monotonic()
            told = False
            while True:
                ready, _, _ = select.select([client, origin], [], [], IDLE_S - (time.monotonic() - last))
                if not ready:
                    self.cut += 1
                    client.sendall(b"HTTP/1.1 524 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n" if not told else b"")
                    return
                for sock in ready:
                    data = sock.recv(65536)
                    if not data:
                        return
                    (origin if sock is client else client).sendall(data)
                    if sock is origin:
                        last = time.monotonic()
                        if not told:
                            self.first_byte.append(last - began)
                        told = True

    def added(self):
        """The headers of cloudflared."""
        return {"cf-connecting-ip": self.address, "x-forwarded-for": self.address, "x-forwarded-proto": "https", "cf-visitor": '{"scheme":"https"}',
                "cf-ray": "1"}

    def client(self):
        return Client(f"http://{PUBLIC}", self.site.token, None, 60, ("127.0.0.1", self.port))


class Http2Origin:
    """A TLS connection to nginx, whose streams are requests."""

    def __init__(self, port):
        context = ssl.create_default_context(cafile=sites.certificate()[0])
        context.set_alpn_protocols(["h2"])
        self.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        equal(self.sock.selected_alpn_protocol(), "h2")
        self.lock = threading.Lock()  # of state and of the connection's writing side
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.state.initiate_connection()
        self.answers = {}  # of each stream: events; None: the connection has ended
        self.ending = False  # it takes no further request
        self._flush()
        at_test_end(self.sock.close)
        threading.Thread(target=self._read, daemon=True).start()

    def _flush(self):
        self.sock.sendall(self.state.data_to_send())

    def _frames(self):
        """All but GOAWAY, after which streams that have begun go on: h2 would take it for their end."""
        data = b""
        while more := self.sock.recv(65536):
            data += more
            while len(data) >= HEAD_LEN and len(data) >= (size := HEAD_LEN + int.from_bytes(data[:3], "big")):
                frame, data = data[:size], data[size:]
                self.ending |= frame[3] == GOAWAY
                if frame[3] != GOAWAY:
                    yield frame

    def _read(self):
        with contextlib.suppress(OSError, ValueError):
            for frame in self._frames():
                with self.lock:
                    for event in self.state.receive_data(frame):
                        if isinstance(event, h2.events.DataReceived):
                            self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                        if getattr(event, "stream_id", 0) in self.answers:
                            self.answers[event.stream_id].put(event)
                    self._flush()
        with self.lock:
            self.ending = True
            for answers in self.answers.values():
                answers.put(None)

    def ask(self, headers, body):
        """(number, answers) of a new stream; None: nginx has told this connection to end."""
        with self.lock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            if not self.ending:
                number = self.state.get_next_available_stream_id()
                self.answers[number] = queue.Queue()
                self.state.send_headers(number, headers, end_stream=not body)
                if body:
                    self.state.send_data(number, body, end_stream=True)
                self._flush()
                return number, self.answers[number]
        return None

    def cancel(self, number):
        with self.lock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            self.state.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
            self._flush()


class Http2Tunnel(Tunnel):
    """The same with http2Origin: all requests are streams of one TLS connection. When nginx ends it, another follows."""

    def __init__(self, site):
        if not h2:
            raise Skip("python3-h2 is not installed")
        super().__init__(site)
        self.origins = [Http2Origin(site.https_port)]
        self.choosing = threading.Lock()

    def _ask(self, head, body):
        """(connection, number, answers) of a new stream."""
        lines = head.decode().split("\r\n")
        method, path, _ = lines[0].split()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        names = [(":method", method), (":scheme", "https"), (":authority", headers["host"]), (":path", path)]
        rest = {name: value for name, value in headers.items() if name not in ("host", "connection", "transfer-encoding")} | self.added()
        with self.choosing:
            while not (begun := self.origins[-1].ask([*names, *rest.items()], body)):
                self.origins.append(Http2Origin(self.site.https_port))
            return self.origins[-1], *begun

    def _serve(self, client):
        with client:
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            size = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            while len(body) < sum(size):
                body += client.recv(65536)
            began = time.monotonic()
            while self._answer(client, self._ask(head, body), began):
                pass

    def _answer(self, client, stream, began):
        """True: nginx ended the connection before the request, which has to be asked again."""
        origin, number, answers = stream
        told = False
        try:
            event = answers.get(timeout=IDLE_S)
            while not isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                if event is None:
                    return not told
                if isinstance(event, h2.events.ResponseReceived):
                    self.first_byte.append(time.monotonic() - began)
                    told = True
                    (_, status), *headers = event.headers
                    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
                    client.sendall(f"HTTP/1.1 {status} \r\n{lines}connection: close\r\n\r\n".encode())
                elif isinstance(event, h2.events.DataReceived):
                    client.sendall(event.data)
                event = answers.get(timeout=IDLE_S)
        except (queue.Empty, OSError) as problem:  # silent for too long; or the client has gone
            self.cut += isinstance(problem, queue.Empty)
            origin.cancel(number)
        return False


# As nginx/README.md has them.
SETTINGS = {"PUBLIC_BASE_URL": f"https://{PUBLIC}", "SANDBOX_TIMEOUT": "60s"}
NGINX = {"HOSTS": PUBLIC, "REAL_IP_FROM": "127.0.0.1", "REAL_IP_HEADER": "CF-Connecting-IP"}


def _tunnelled(kind):
    site = sites.with_settings(**SETTINGS, nginx=NGINX)
    return site, kind(site)


@test("behind a tunnel: a silent call without a progress token outlives the cut, addresses are the clients', links have the public name", timeout=120)
def _():
    site, tunnel = _tunnelled(Tunnel)
    result = tunnel.client().run("import time; time.sleep(16); open('a.txt', 'w').write('x'); print('slept')", waitMs=50000)
    equal((result["status"], result["stdout"], tunnel.cut), ("ok", "slept\n", 0))
    check(14 < tunnel.first_byte[-1] < IDLE_S, f"first byte after {tunnel.first_byte[-1]:.1f} s")
    contains(result["files"][0]["url"], f"https://{PUBLIC}/files/")
    client = tunnel.client()
    client.conversation = "tunnel"
    link = client.structured("create_upload", {"conversationId": "tunnel", "filename": "up.bin"})["url"]
    contains(link, f"https://{PUBLIC}/uploads/")
    equal(tunnel.client().http("PUT", link.removeprefix(f"https://{PUBLIC}"), b"u" * 300_000).status, 201, "an upload through the tunnel")
    equal(client.run("wc -c <up.bin", "bash")["stdout"], "300000\n")
    with open(f"{site.folder}/log/access.log", encoding="utf-8") as log:
        contains(log.read(), f" {ADDRESS} ")


@test("behind a tunnel that speaks HTTP/2 to nginx: streams and silent calls share a connection, unbuffered; addresses are in log and limits", timeout=120)
def _():
    site, tunnel = _tunnelled(Http2Tunnel)
    before = os.path.getsize(f"{site.folder}/log/access.log")
    silent, told = tunnel.client(), []
    slow = threading.Thread(target=lambda: told.append(silent.run("import time; time.sleep(16); print('slept')", waitMs=50000)))
    slow.start()
    client = tunnel.client()
    client.conversation = "tunnel"
    result = client.run("open('a.txt', 'w').write('x' * 200000); print('made')")
    link = result["files"][0]["url"]
    contains(link, f"https://{PUBLIC}/files/")
    equal(client.http("GET", link.removeprefix(f"https://{PUBLIC}")).body, b"x" * 200000)
    params = {"name": "run_code", "arguments": {"conversationId": "tunnel", "language": "bash", "code": "echo one; sleep 4; echo two"}}
    stream = open_modern(tunnel.client(), "tools/call", params, name="run_code", meta={"progressToken": "p"}).begin()
    began = time.monotonic()
    stream.wait_for("notifications/progress", 1)
    check(time.monotonic() - began < 3.5, "the progress was held back")
    equal(stream.result()["result"]["structuredContent"]["stdout"], "one\ntwo\n")
    flood = [client.http("GET", "/healthz").status for _ in range(60)]
    check(429 in flood, "one address alone has no limit")
    tunnel.address = "198.51.100.8"
    equal(client.http("GET", "/healthz").status, 200, "of another address")
    slow.join(60)
    equal((told[0]["status"], told[0]["stdout"], tunnel.cut), ("ok", "slept\n", 0))
    check(14 < max(tunnel.first_byte) < IDLE_S, f"first bytes after {tunnel.first_byte}")
    with open(f"{site.folder}/log/access.log", encoding="utf-8") as log:
        lines = [line for line in log.read()[before:].splitlines() if "/mcp" in line]
    check(lines and all(f" {ADDRESS} " in line and " HTTP/2.0" in line for line in lines), lines[-3:])


def _upgrade(site):
    """Another program, and what nginx/README.md has for it."""
    shutil.copy(site.binary, site.binary + ".new")
    os.rename(site.binary + ".new", site.binary)
    before = site.log().count("listening on")
    site.reload_nginx()
    site.reload()
    wait_until(lambda: site.log().count("listening on") > before, 20, "the new program serves")


def _upgrade_walk(kind):
    site = sites.own(SETTINGS, nginx=NGINX, binary=shutil.copy(sites.BINARY, f"{new_folder('program')}/sandcgi"))
    tunnel = kind(site)
    client, lasts, pings = tunnel.client(), tunnel.client(), tunnel.client()
    client.conversation = lasts.conversation = "tunnel"
    link = client.run("open('a.txt', 'w').write('x'); print('made')")["files"][0]["url"].removeprefix(f"https://{PUBLIC}")
    over, statuses = threading.Event(), []

    def ask():
        while not over.wait(0.05):
            statuses.append(pings.request("ping").status)
    caller = threading.Thread(target=ask, daemon=True)
    caller.start()
    params = {"name": "run_code", "arguments": {"conversationId": "streams", "language": "bash", "code": f"echo one; {runs.UNTIL_GO}echo two"}}
    stream = open_modern(tunnel.client(), "tools/call", params, name="run_code", meta={"progressToken": "p"}).begin()
    stream.wait_for("notifications/progress", 3)
    run = lasts.begin_run(f"{runs.UNTIL_GO}echo over", "bash")
    wait_until(lambda: len(site.containers()) == 2, 15, "both programs run")
    _upgrade(site)
    for conversation in ("tunnel", "streams"):
        pings.fresh().upload("go", b"", conversation)
    result, status = end_run(run, 30)
    equal((status, result["stdout"]), (200, "over\n"), "the call that was under way")
    equal(stream.result()["result"]["structuredContent"]["stdout"], "one\ntwo\n", "the stream that was open")
    wait_until(lambda: len(statuses) > 20, 20, "calls meanwhile")
    over.set()
    caller.join()
    equal((set(statuses), tunnel.cut), ({200}, 0), "calls meanwhile")
    equal(client.http("GET", link).body, b"x", "an old link")
    return site, tunnel


@test("behind a tunnel: an upgrade with a call and a stream under way; removed, the site has its own name, and the tunnel's header counts for nothing", timeout=120)
def _():
    site, _tunnel = _upgrade_walk(Tunnel)
    site.settings["PUBLIC_BASE_URL"] = site.base_url
    site.nginx_values = {}
    site.reload_nginx()
    site.reload()
    client = sites.new_conversation(site.client())
    wait_until(lambda: client.request("tools/list").status == 200, 20, "it answers under its own name")
    forged = "203.0.113.9"
    equal(client.http("GET", "/healthz", headers={"CF-Connecting-IP": forged}).status, 200)
    result = wait_until(lambda: (r := client.run("echo x >b.txt", "bash"))["files"][0]["url"].startswith(f"{site.base_url}/files/") and r, 20, "links with its own name")
    equal(client.download(result["files"][0]["url"]).body, b"x\n")
    with open(f"{site.folder}/log/access.log", encoding="utf-8") as log:
        check(forged not in log.read(), "a header of a client counts")


@test("behind a tunnel that speaks HTTP/2 to nginx: an upgrade with a call and a stream under way", timeout=120)
def _():
    _site, tunnel = _upgrade_walk(Http2Tunnel)
    check(len(tunnel.origins) > 1, "the connection outlived nginx's reload")

"""Behind a tunnel: a stand-in of cloudflared sends what that one sends, and ends a request that has been silent for long."""
import contextlib
import http.client
import select
import socket
import threading
import time

import sites
from harness import at_test_end, check, contains, equal, test
from mcp import Client

PUBLIC = "sandbox.example.org"
ADDRESS = "198.51.100.7"
IDLE_S = 18  # 100 s at Cloudflare; keep-alives come every 15 s


class Tunnel:
    """Takes requests of one connection each, adds the headers of cloudflared, and passes bytes on as they come."""

    def __init__(self, site):
        self.site = site
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
            ours = f"CF-Connecting-IP: {ADDRESS}\r\nX-Forwarded-For: {ADDRESS}\r\nX-Forwarded-Proto: https\r\nCF-Visitor: {{\"scheme\":\"https\"}}\r\nCF-Ray: 1\r\n"
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

    def client(self):
        client = Client(f"http://{PUBLIC}", self.site.token, None, 60)
        client.connect = self._connect
        return client

    def _connect(self):
        connection = http.client.HTTPConnection(PUBLIC, timeout=60)
        connection.sock = socket.create_connection(("127.0.0.1", self.port), 60)
        return connection


@test("behind a tunnel: a silent call without a progress token outlives the cut, addresses are the clients', links have the public name", timeout=120)
def _():
    site = sites.own({"PUBLIC_BASE_URL": f"https://{PUBLIC}", "SANDBOX_TIMEOUT": "60s"}, False)
    site.nginx_values = {"HOSTS": PUBLIC, "REAL_IP_FROM": "127.0.0.1", "REAL_IP_HEADER": "CF-Connecting-IP"}
    site.start()
    tunnel = Tunnel(site)
    result = tunnel.client().run("import time; time.sleep(20); open('a.txt', 'w').write('x'); print('slept')", waitMs=50000)
    equal((result["status"], result["stdout"], tunnel.cut), ("ok", "slept\n", 0))
    check(14 < tunnel.first_byte[-1] < IDLE_S, f"first byte after {tunnel.first_byte[-1]:.1f} s")
    contains(result["files"][0]["url"], f"https://{PUBLIC}/files/")
    with open(f"{site.folder}/log/access.log", encoding="utf-8") as log:
        contains(log.read(), f" {ADDRESS} ")

"""The site under a path of its own, and behind another nginx."""
import json
import os
import socket
import subprocess
import time

from front import Site, find_nginx, free_port, token

KEY = "a" * 64
OUTER = """
{user}
pid "{root}/run/outer.pid";
error_log "{root}/log/outer-error.log";
events {{ }}
http {{
    client_body_temp_path "{root}/tmp/body"; fastcgi_temp_path "{root}/tmp/fastcgi"; proxy_temp_path "{root}/tmp/outer";
    scgi_temp_path "{root}/tmp/scgi"; uwsgi_temp_path "{root}/tmp/uwsgi";
    access_log off;
    server {{
        listen 127.0.0.1:{port};
        location {path} {{ proxy_pass http://127.0.0.1:{inner}{below}; }}
    }}
}}
"""


class Outer:
    """A second nginx whose only words about ours are proxy_pass."""

    def __init__(self, site, path="/", below=""):
        self.site, self.port = site, free_port()
        with open(site.path("conf/outer.conf"), "w", encoding="ascii") as out:
            out.write(OUTER.format(root=site.root, port=self.port, inner=site.http, path=path, below=below,
                                   user="user www-data;" if site.as_root else ""))
        self.process = subprocess.Popen([find_nginx(), "-e", site.path("log/outer-error.log"), "-g", "daemon off;", "-c", site.path("conf/outer.conf")])
        self.inner, site.http = site.http, self.port
        for _ in range(400):
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the outer nginx did not start: " + site.log("outer-error.log"))

    def stop(self):
        self.site.http = self.inner
        self.process.terminate()
        self.process.wait(60)


def started(**settings):
    site = Site(**settings)
    os.mkdir(site.path("sandboxes/" + KEY))
    with open(site.path(f"sandboxes/{KEY}/a.txt"), "w", encoding="ascii") as out:
        out.write("hello\n")
    os.chmod(site.path("sandboxes"), 0o711)
    site.start()
    return site


def everything_below(checks, site, path, how):
    """All that there is, below this path."""
    answer = site.request("POST", path + "/mcp", b"{}", token=site.token)
    values = dict(json.loads(answer.body)["params"]) if answer.status == 200 else {}
    checks.equal(f"{how}: a call reaches a worker, which knows nothing of the path", (answer.status, values.get("REQUEST_URI")), (200, "/mcp"))
    checks.equal(f"{how}: a call needs its token", site.request("POST", path + "/mcp", b"{}").status, 401)
    for name in ("/mcp/all", "/mcp/api"):
        checks.equal(f"{how}: {name}", site.request("POST", path + name, b"{}", token=site.token).status, 200)
    before = len(site.hub.requests)
    site.request("GET", path + "/mcp", token=site.token)
    checks.equal(f"{how}: a stream reaches the hub", [dict(one["params"])["REQUEST_URI"] for one in site.hub.requests[before:]], ["/mcp"])
    for path_of in ("/healthz", "/readyz"):
        checks.equal(f"{how}: {path_of}", site.request("GET", path + path_of).status, 200)
    answer = site.request("GET", f"{path}/files/{KEY}/{token(KEY)}/a.txt")
    checks.equal(f"{how}: a file", (answer.status, answer.body), (200, b"hello\n"))
    checks.equal(f"{how}: a file with another token", site.request("GET", f"{path}/files/{KEY}/{token('b' * 64)}/a.txt").status, 404)
    for method, name in (("PUT", f"/uploads/{'b' * 32}"), ("GET", f"/archives/{KEY}/files.zip?x=1")):
        site.request(method, path + name, b"body" if method == "PUT" else b"")
        checks.equal(f"{how}: {name[:9]}", dict(site.responder.requests[-1]["params"])["REQUEST_URI"], name)
    checks.check(f"{how}: no token of a file in the log", token(KEY)[:8] not in site.log("access.log") and "b" * 12 not in site.log("access.log"),
                 site.log("access.log"))


def sub_path(checks):
    site = started(PREFIX="/sand.box/", NEVER_REUSE="/mcp", PROFILES="session")
    try:
        everything_below(checks, site, "/sand.box", "below a path")
        values = dict(json.loads(site.request("POST", "/sand.box/mcp", b"{}", token=site.token).body)["params"])
        checks.equal("NEVER_REUSE names places without the path", values.get("SANDCGI_REUSE"), "never")
        checks.equal("a set of tools", site.request("POST", "/sand.box/mcp/session", b"{}", token=site.token).status, 200)
        for path in ("/mcp", f"/files/{KEY}/{token(KEY)}/a.txt", f"/uploads/{'b' * 32}", "/healthz", "/sandxbox/mcp"):
            checks.equal(f"nothing of ours at {path[:12]}", site.request("POST", path, b"{}", token=site.token).status, 404)
        for bad in ("PREFIX=sandbox", "PREFIX=/a b", "PREFIX=/a//b", "PREFIX=/../x"):
            checks.check(f"render.sh refuses {bad}", "must be a path" in site.render_command(bad).stderr)
    finally:
        site.stop()


def second_nginx(checks):
    site = started()
    outer = Outer(site)
    try:
        began = time.monotonic()
        with site.connect() as conn:
            body = b'{"do":"stream","count":3,"gap":0.5}'
            conn.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            data = b""
            while b"data: 0" not in data and (part := conn.recv(4096)):
                data += part
            checks.check("an event passes a second nginx as it comes", b"data: 0" in data and time.monotonic() - began < 1, (data, time.monotonic() - began))
        everything_below(checks, site, "", "behind a second nginx")
    finally:
        outer.stop()
    outer = Outer(site, "/tools/", "/")
    try:
        everything_below(checks, site, "/tools", "behind a second nginx that takes a path away")
    finally:
        outer.stop()
        site.stop()


def real_addresses(checks):
    """A proxy that is trusted names the client; anybody else is known by the connection."""
    site = started(REAL_IP_FROM="127.0.0.1", REAL_IP_HEADER="CF-Connecting-IP")
    try:
        def seen(name="198.51.100.7", header="CF-Connecting-IP"):
            return dict(json.loads(site.call(headers=[(header, name)]).body)["params"])["REMOTE_ADDR"]
        checks.equal("the header of a trusted proxy names the client", seen(), "198.51.100.7")
        checks.equal("an IPv6 address, too", seen("2001:db8::7"), "2001:db8::7")
        checks.equal("another header does not", seen(header="X-Forwarded-For"), "127.0.0.1")
        checks.equal("nor does nonsense", seen("nobody"), "127.0.0.1")
        checks.check("the log has the client's address", " 198.51.100.7 " in site.log("access.log", " 198.51.100.7 "), site.log("access.log"))
        answers = [site.request("GET", "/healthz", headers=[("CF-Connecting-IP", f"198.51.100.{n % 2}")]).status for n in range(80)]
        many = [site.request("GET", "/healthz", headers=[("CF-Connecting-IP", f"2001:db8:1:2:{n:x}::{n:x}")]).status for n in range(40)]
        checks.check("H-75: a network of 64 bits counts as one client", 429 in many, many)
        other = [site.request("GET", "/healthz", headers=[("CF-Connecting-IP", f"2001:db8:1:{n:x}::1")]).status for n in range(16, 56)]
        checks.check("and another network as another", 429 not in other, other)
        checks.check("limits count clients", answers[:40].count(429) < 10 and 429 in answers, answers)
        site.render(REAL_IP_FROM="10.0.0.0/8", REAL_IP_HEADER="CF-Connecting-IP")
        site.reload()
        checks.equal("a proxy that is not trusted names nobody", seen(), "127.0.0.1")
        site.render()
        site.reload()
        checks.equal("off unless it is set", seen(), "127.0.0.1")
        for bad in ("REAL_IP_FROM=proxy.test", "REAL_IP_HEADER=X Y"):
            checks.check(f"render.sh refuses {bad}", site.render_command(bad).returncode == 1)
    finally:
        site.stop()


GROUPS = [sub_path, second_nginx, real_addresses]

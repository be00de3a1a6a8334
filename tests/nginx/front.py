"""A real nginx on loopback ports, rendered from the templates, with the fake responder behind it."""
import base64
import grp
import hashlib
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

from fake_fcgi import Responder

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests/lib"))
import leftovers  # noqa: E402  pylint: disable=wrong-import-position

NGINX_DIR = TOP / "nginx"
BINARY = pathlib.Path(os.environ.get("SANDCGI_TEST_BINARY") or TOP / "build/sandcgi")
SECRET = "s3cret-of-this-start"
FILE_KEY = "k" * 64


def token(text):
    """What proves a file's URL (common/sandbox/links/file_link.h)."""
    digest = hashlib.md5(FILE_KEY.encode() + text.encode() + FILE_KEY.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def find_nginx():
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_port():
    """Below those that the kernel gives to connections, which may be in use a moment later."""
    while True:
        try:
            with socket.socket() as probe:
                port = random.randrange(10000, 32000)
                probe.bind(("", port))
                return port
        except OSError:
            pass


class Answer:
    """status, headers (lower-case names to lists of values), body"""

    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers.setdefault(name.strip().lower(), []).append(value.strip())
        if self.header("transfer-encoding") == "chunked":
            self.body = dechunk(self.body)

    def header(self, name):
        return ", ".join(self.headers.get(name, []))


def dechunk(data):
    out = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size or b"0", 16)
        out += data[:length]
        data = data[length + 2:]
        if not length:
            break
    return out


class Site:
    def __init__(self, **settings):
        self.root = leftovers.make_folder("sandcgi-nginx-")
        os.chmod(self.root, 0o755)
        for name in ("run", "log", "tmp", "tls", "sandboxes", "conf"):
            os.mkdir(self.path(name))
        self.http, self.https = free_port(), free_port()
        self.as_root = os.geteuid() == 0
        self.group = grp.getgrnam("www-data").gr_gid if self.as_root else None
        self.responder = Responder(self.path("run/front.sock"), self.group)
        self.hub = Responder(self.path("run/hub.sock"), self.group)
        self.certificate()
        with open(self.path("run/secret.conf"), "w", encoding="ascii") as out:
            out.write(f"fastcgi_param SANDCGI_SECRET {SECRET};\n")
        with open(self.path("run/file-key.conf"), "w", encoding="ascii") as out:
            out.write(f'set $sandcgi_file_key "{FILE_KEY}";\n')
        self.token = self.add_token("default")
        self.render(**settings)
        self.process = None

    def path(self, name):
        return os.path.join(self.root, name)

    def certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", self.path("tls/key.pem"), "-out", self.path("tls/cert.pem"), "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)

    def token_command(self, *words, stdin=None, options=("--no-reload",)):
        return subprocess.run([BINARY, "token", "--file", self.path("conf/tokens.map"), *options, *words],
                              check=False, capture_output=True, text=True, input=stdin)

    def add_token(self, tenant, *words):
        return self.token_command("add", "--tenant", tenant, *words).stdout.strip()

    def render_command(self, *extra, **settings):
        values = {"RUN_DIR": self.path("run"), "LOG_DIR": self.path("log"), "TMP_DIR": self.path("tmp"), "CACHE_DIR": self.path("tmp"),
                  "SANDBOX_ROOT": self.path("sandboxes"), "BACKEND": "unix:" + self.path("run/front.sock"), "HUB": "unix:" + self.path("run/hub.sock"),
                  "SECRET_CONF": self.path("run/secret.conf"), "FILE_KEY_CONF": self.path("run/file-key.conf"), "TOKENS_FILE": self.path("conf/tokens.map"),
                  "CERT": self.path("tls/cert.pem"), "CERT_KEY": self.path("tls/key.pem"),
                  "USER": "www-data www-data" if self.as_root else "",
                  "HTTPS_PORT": self.https, "HTTP_PORT": self.http, **settings}
        return subprocess.run([NGINX_DIR / "render.sh", self.path("conf"), *(f"{k}={v}" for k, v in values.items()),
                               *extra], check=False, capture_output=True, text=True)

    def render(self, **settings):
        done = self.render_command(**settings)
        if done.returncode:
            raise RuntimeError(done.stderr)

    def check_config(self, conf="nginx.conf"):
        return subprocess.run([find_nginx(), "-t", "-e", self.path("log/nginx-error.log"), "-c", self.path("conf/" + conf)],
                              check=False, capture_output=True, text=True)

    def start(self, conf="nginx.conf"):
        self.process = subprocess.Popen([find_nginx(), "-e", self.path("log/nginx-error.log"), "-g", "daemon off;",
                                         "-c", self.path("conf/" + conf)], stdout=subprocess.DEVNULL)
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", self.http), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("nginx did not start: " + self.log("nginx-error.log"))

    def workers(self):
        """nginx's processes that take new connections. After a reload those of before go on for a while."""
        found = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat, open(f"/proc/{name}/cmdline", "rb") as title:
                    if int(stat.read().rpartition(")")[2].split()[1]) == self.process.pid and b"shutting" not in title.read():
                        found.add(int(name))
            except OSError:
                pass
        return found

    def await_reload(self, before):
        """Until none of these workers takes new connections."""
        end = time.monotonic() + 20
        while before & self.workers() and time.monotonic() < end:
            time.sleep(0.02)

    def reload(self):
        before = self.workers()
        self.process.send_signal(signal.SIGHUP)
        self.await_reload(before)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(60)
        self.responder.close()
        self.hub.close()
        shutil.rmtree(self.root)

    def log(self, name, *wanted):
        """With these words, if they come: nginx writes a line after its answer."""
        end = time.monotonic() + 20
        while True:
            with open(self.path("log/" + name), encoding="utf-8", errors="replace") as log:
                text = log.read()
            if all(one in text for one in wanted) or time.monotonic() > end:
                return text
            time.sleep(0.02)

    def connect(self, tls=False):
        if not tls:
            return socket.create_connection(("127.0.0.1", self.http), 20)
        context = ssl.create_default_context(cafile=self.path("tls/cert.pem"))
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.https), 20), server_hostname="localhost")

    def raw(self, data, tls=False):
        with self.connect(tls) as conn:
            conn.sendall(data)
            parts = []
            try:
                while part := conn.recv(65536):
                    parts.append(part)
            except ConnectionResetError:
                pass
        return Answer(b"".join(parts))

    def request(self, method, path, body=b"", headers=(), tls=False, token=None, host="localhost"):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        if body or method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers]
        return self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body, tls)

    def call(self, body=b"{}", headers=(), **more):
        return self.request("POST", "/mcp", body, headers, token=more.pop("token", self.token), **more)

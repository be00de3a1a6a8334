"""A package index of the tests' own for pip, over https, and wheels to be had there."""
import base64
import hashlib
import http.server
import io
import ssl
import threading
import time
import zipfile

import sites
from harness import at_end


def wheel(name, version, files, requires=()):
    """(file name, bytes) of a wheel with these files, {path: text}."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    whole = dict(files) | {f"{info}/METADATA": metadata,
                           f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    rows = []
    for path, text in whole.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}")
    whole[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in whole.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", data.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        index = self.server.index
        parts = self.path.strip("/").split("/")
        index.asked.append(self.path)
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in ("slow", "huge"):
            self.stream(parts[1])
        elif parts[0] == "simple" and len(parts) == 2 and parts[1] in index.projects:
            links = "".join(f'<a href="/files/{name}">{name}</a>' for name in index.projects[parts[1]])
            self.say(200, f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
        elif parts[0] == "files" and parts[-1] in index.files:
            self.say(200, index.files[parts[-1]], "application/octet-stream")
        else:
            self.say(404, b"not here", "text/plain")

    def say(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, how):
        """A page that never ends: a byte now and then, or as many as fit."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        try:
            while not self.server.index.over.is_set():
                self.wfile.write(b" " if how == "slow" else b" " * 1048576)
                time.sleep(1 if how == "slow" else 0)
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that leaves early is no news."""


class Index:
    """Serves until the suite ends; asked holds the paths of all requests."""

    def __init__(self):
        self.projects, self.files, self.asked = {}, {}, []
        self.over = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.index = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sites.certificate())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        at_end(self.end)

    def end(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}/simple"

    def add_file(self, project, name, data):
        self.files[name] = data
        self.projects.setdefault(project, []).append(name)

    def add(self, name, version, files, requires=()):
        self.add_file(name.replace("_", "-"), *wheel(name, version, files, requires))

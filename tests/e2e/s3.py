"""An S3 server for the tests of SANDBOX_STORE: s3rver, from npm, behind a check of each request's signature, which s3rver itself leaves out."""
import functools
import hashlib
import hmac
import http.client
import http.server
import os
import re
import socket
import subprocess
import threading
import urllib.parse

import procs
from harness import TOP, Skip, at_test_end, new_folder, wait_until
from sites import free_port

KEY = "S3RVER:S3RVER"  # the only key that it knows
BUCKET = "sandcgi-tests"


@functools.cache
def _program():
    script = '. "$1/tests/lib/node.sh"; node_find || exit 1; place=$(node_install "$1/tests/store") || exit 1; printf "%s\\n%s\\n" "$NODE" "$place"'
    done = subprocess.run(["bash", "-c", script, "-", TOP], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"no S3 server: {done.stderr.strip()[-300:]}")
    node, place = done.stdout.split("\n")[-3:-1]
    return [node, f"{place}/node_modules/s3rver/bin/s3rver.js"]


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _fault(method, target, headers, body):
    """Why AWS would refuse the request (Signature Version 4); "" where it would not."""
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
                         headers.get("Authorization", ""))
    if not given:
        return "no signature"
    key_id, day, region, signed, signature = given.groups()
    if key_id != KEY.split(":")[0]:
        return "an unknown key"
    time, total = headers.get("X-Amz-Date", ""), headers.get("X-Amz-Content-Sha256", "")
    if not time.startswith(day) or not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed.split(";")):
        return "a header that is not signed"
    if total != hashlib.sha256(body).hexdigest():
        return "another content"
    url = urllib.parse.urlsplit(target)
    missing = [name for name in signed.split(";") if name not in headers]
    if missing:
        return f"signed headers that were not sent: {' '.join(missing)}"
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in signed.split(";")]
    request = "\n".join([method, url.path, url.query, *lines, "", signed, total])
    scope = f"{day}/{region}/s3/aws4_request"
    key = f"AWS4{KEY.split(':')[1]}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = _hmac(key, part)
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(request.encode()).hexdigest()])
    return "" if hmac.compare_digest(_hmac(key, text).hex(), signature) else "a wrong signature"


class _Check(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = _fault(self.command, self.path, self.headers, body)
        self.server.faults.append(fault)
        try:
            status, headers, content = (403, [], fault.encode()) if fault else self._asked(body)
        except OSError:  # it has been stopped
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:  # the client has read what it wanted
            self.close_connection = True

    def _asked(self, body):
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        content = answer.read()
        behind.close()
        left_out = {"content-length", "transfer-encoding", "connection", "date", "server"}
        return answer.status, [(name, value) for name, value in answer.getheaders() if name.lower() not in left_out], content

    do_GET = do_PUT = do_DELETE = _pass

    def log_message(self, *_):
        pass


class S3:
    def __init__(self):
        self.folder, self.port = new_folder("s3"), free_port()
        self.process = self.check = None
        self.faults = []  # of each request, "" where there is none
        at_test_end(self.stop)

    def start(self):
        behind = free_port()
        command = [*_program(), "-d", self.folder, "-a", "127.0.0.1", "-p", str(behind), "--configure-bucket", BUCKET]
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: _answers(behind), 20, "the S3 server answers")
        self.check = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), _Check)
        self.check.behind, self.check.faults = behind, self.faults
        threading.Thread(target=self.check.serve_forever, daemon=True).start()
        return self

    def stop(self):
        if self.process:
            self.check.shutdown()
            self.check.server_close()
            procs.end(self.process, 10)
        self.process = self.check = None

    def settings(self, key=KEY, prefix="nodes/a", port=None):
        path = f"{new_folder('key')}/credentials"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{key}\n")
        os.chmod(path, 0o600)
        return {"SANDBOX_STORE": f"s3://{BUCKET}/{prefix}", "SANDBOX_STORE_ENDPOINT": f"http://127.0.0.1:{port or self.port}",
                "SANDBOX_STORE_CREDENTIALS": path}

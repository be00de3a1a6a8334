"""An issuer of access tokens on a loopback port: metadata, keys, introspection, and what goes wrong with them."""
import base64
import http.server
import json
import subprocess
import tempfile
import threading
import time
import urllib.parse


def b64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """An RSA key by the openssl command."""

    def __init__(self, kid):
        self.kid = kid
        self.file = tempfile.NamedTemporaryFile(suffix=".pem")  # pylint: disable=consider-using-with
        subprocess.run(["openssl", "genrsa", "-out", self.file.name, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.file.name, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        self.jwk = {"kty": "RSA", "kid": kid, "use": "sig", "n": b64url(bytes.fromhex(modulus.strip().partition("=")[2])), "e": "AQAB"}

    def sign(self, claims, **header):
        parts = [{"typ": "at+jwt", "alg": "RS256", "kid": self.kid, **header}, claims]
        text = ".".join(b64url(json.dumps(part).encode()) for part in parts)
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.file.name], check=True, capture_output=True, input=text.encode()).stdout
        return text + "." + b64url(signature)


class Issuer:
    def __init__(self):
        self.key = Key("one")
        self.keys = [self.key]
        self.fetches = []   # paths, in their order
        self.active = {}    # opaque tokens and their claims
        self.mode = "good"  # of the set of keys: good, error, slow, huge, redirect, poisoned
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, body, status=200, headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                outer.fetches.append(self.path)
                if self.path == "/.well-known/openid-configuration":
                    self.answer(json.dumps({"issuer": outer.url, "jwks_uri": outer.url + "/jwks"}).encode())
                elif self.path == "/jwks":
                    outer.send_keys(self)
                else:
                    self.answer(b"{}", 404)

            def do_POST(self):
                outer.fetches.append(self.path)
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                good = self.headers["Authorization"] == "Basic " + base64.b64encode(b"client:secret of it").decode()
                claims = outer.active.get(form["token"][0])
                self.answer(json.dumps({"active": True, **claims} if claims else {"active": False}).encode(), 200 if good else 401)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def send_keys(self, handler):
        text = json.dumps({"keys": [key.jwk for key in self.keys]}).encode()
        if self.mode == "good":
            handler.answer(text)
        elif self.mode == "error":
            handler.answer(b"", 500)
        elif self.mode == "slow":
            time.sleep(3)
            handler.answer(text)
        elif self.mode == "huge":
            handler.answer(text[:-1] + b" " * (1 << 20) + b"}")
        elif self.mode == "redirect":
            handler.answer(b"", 302, [("Location", self.url + "/other")])
        else:
            handler.answer(b'{"keys":[{"kty":"oct","kid":"one","k":"AAAA"}]}')

    def claims(self, audience, **more):
        now = int(time.time())
        return {"iss": self.url, "aud": audience, "sub": "alice", "scope": "run files", "iat": now, "exp": now + 600, **more}

    def close(self):
        self.server.shutdown()
        self.server.server_close()

"""A client of the authorization server, and the browser of its operator: registration, PKCE, the page, tokens, and each step wrongly."""
import base64
import hashlib
import html
import json
import re
import secrets
import subprocess
import urllib.parse

import sites
from harness import check, contains, equal
from mcp import Client

PASSPHRASE = "correct horse battery staple"
REDIRECT = "https://client.example.org/callback"
FORM = "application/x-www-form-urlencoded"


def set_passphrase(site, text=PASSPHRASE):
    return subprocess.run([site.binary, "oauth", "passphrase", "--config", site.config], input=text + "\n", text=True, check=False,
                          capture_output=True, env=site.tool_environment())


def server(settings=None, start=True, **more):
    """A server of one test, or of the suite, whose operator has a passphrase."""
    site = sites.own({"SANDCGI_OAUTH": "builtin"} | (settings or {}), start=False, **more)
    done = set_passphrase(site)
    equal(done.returncode, 0, done.stderr)
    return site.start() if start else site


def pkce():
    verifier = secrets.token_urlsafe(48)
    return verifier, base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def claims(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


class Page:
    """What a browser has of an answer: its form with the hidden fields, its cookie, and where it goes on to."""

    def __init__(self, answer):
        self.status, self.headers, self.text = answer.status, answer.headers, answer.body.decode()
        self.fields = {name: html.unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', self.text)}
        self.cookie = (answer.headers.get("Set-Cookie") or "").partition(";")[0]
        found = re.search(r'<meta http-equiv="refresh" content="0;url=([^"]*)">', self.text)
        self.target = html.unescape(found.group(1)) if found else None

    def result(self):
        """The parameters that the client gets."""
        check(self.target, f"no way back to the client: {self.text[-700:]}")
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query))

    def problem(self):
        found = re.search(r'class="problem"[^>]*>([^<]*)', self.text) or re.search(r"</h1>\n<p>([^<]*)", self.text)
        return html.unescape(found.group(1)) if found else ""


class OAuth:
    """A public client with one registration."""

    def __init__(self, site, prefix=""):
        self.site = site
        self.issuer = site.settings["PUBLIC_BASE_URL"]
        self.http = Client(f"http://localhost:{site.http_port}", timeout=60)
        self.prefix = prefix
        self.client_id = None

    def get(self, path, headers=None):
        return self.http.http("GET", self.prefix + path, headers=headers)

    def post(self, path, fields, headers=None):
        return self.http.http("POST", self.prefix + path, urllib.parse.urlencode(fields).encode(), {"Content-Type": FORM} | (headers or {}))

    def post_json(self, path, value):
        return self.http.http("POST", self.prefix + path, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def register(self, redirects=(REDIRECT,), name="A client", **more):
        answer = self.post_json("/oauth/register", {"redirect_uris": list(redirects), "client_name": name} | more)
        equal(answer.status, 201, f"registration: {answer.body}")
        self.client_id = answer.json()["client_id"]
        return answer.json()

    def query(self, challenge, **changes):
        fields = {"response_type": "code", "client_id": self.client_id, "redirect_uri": REDIRECT, "code_challenge": challenge,
                  "code_challenge_method": "S256", "state": "a state", "scope": "run files", "resource": self.issuer + "/mcp"} | changes
        return urllib.parse.urlencode({name: value for name, value in fields.items() if value is not None})

    def page(self, challenge, **changes):
        return Page(self.get("/oauth/authorize?" + self.query(challenge, **changes)))

    def answer(self, page, headers=None, **changes):
        """Sends the page's form as a browser does."""
        origin = "/".join(self.issuer.split("/")[:3])
        fields = page.fields | {"tenant": "default", "passphrase": PASSPHRASE, "act": "allow"} | changes
        sent = {"Cookie": page.cookie, "Origin": origin} | (headers or {})
        return Page(self.post("/oauth/authorize", {k: v for k, v in fields.items() if v is not None}, {k: v for k, v in sent.items() if v is not None}))

    def code(self, **changes):
        """A code, and the verifier that it needs."""
        verifier, challenge = pkce()
        answers = {name: changes.pop(name) for name in ("tenant",) if name in changes}
        page = self.page(challenge, **changes)
        equal(page.status, 200, f"the page: {page.text[-500:]}")
        result = self.answer(page, **answers).result()
        contains(result, "code", "what the client gets")
        return result["code"], verifier

    def redeem(self, code, verifier, **changes):
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "client_id": self.client_id,
                  "code_verifier": verifier} | changes
        return self.post("/oauth/token", {name: value for name, value in fields.items() if value is not None})

    def refresh(self, token, **changes):
        fields = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id} | changes
        return self.post("/oauth/token", {name: value for name, value in fields.items() if value is not None})

    def tokens(self, **changes):
        answer = self.redeem(*self.code(**changes))
        equal(answer.status, 200, f"tokens: {answer.body}")
        return answer.json()

    def revoked(self):
        with open(f"{self.site.root}/.oauth/public/revoked.json", encoding="ascii") as file:
            return json.load(file)


def refused(answer, code, status=400):
    """An endpoint's error in the form of RFC 6749."""
    equal((answer.status, answer.json().get("error")), (status, code), f"the answer {answer.body}")
    check(answer.json()["error_description"], "an error says why")
    equal(answer.headers["Cache-Control"], "no-store", "Cache-Control")


def shown(page, status, part):
    """A page that says no, and leads nowhere."""
    equal(page.status, status, f"the page: {page.text[-500:]}")
    contains(page.problem(), part, "the page")
    equal((page.target, page.headers.get("Location")), (None, None), "where the page leads")

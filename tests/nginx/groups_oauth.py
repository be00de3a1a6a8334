"""Access tokens of OAuth: a real nginx and a real sandcgi, with an issuer on a loopback port."""
import json
import os
import pwd
import subprocess
import sys
import time

from front import BINARY, TOP, Site
from issuer import Issuer, Key

sys.path.append(str(TOP / "tests/e2e"))
import fcgi  # noqa: E402 pylint: disable=wrong-import-position

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
HEADERS = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")]


class Server:
    """sandcgi serve, of which nginx uses the judge, and the workers where a test says so. It needs no engine."""

    def __init__(self, site, issuer, **settings):
        self.site = site
        with open(site.path("run/front-secret"), "w", encoding="ascii") as out:
            out.write("ab" * 32 + "\n")
        os.chmod(site.path("run/front-secret"), 0o600)
        with open(site.path("run/client"), "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as out:
            out.write("client:secret of it\n")
        os.chmod(site.path("run/client"), 0o600)
        with open(site.path("run/tenants.ini"), "w", encoding="ascii") as out:
            out.write("[students]\nnetwork = none\ntoolsets = files\n")
        self.environment = {
            "PATH": os.environ["PATH"], "SANDBOX_ROOT": site.path("sandboxes"), "FILE_SECRET": "0123456789abcdef" * 4,
            "PUBLIC_BASE_URL": site.url, "SANDCGI_LISTEN": site.path("run/real.sock"), "SANDCGI_BROKER": site.path("run/broker.sock"),
            "SANDCGI_SECRET_FILE": site.path("run/front-secret"), "SANDCGI_WORKERS": "4", "DOCKER_HOST": "unix:///nonexistent.sock",
            "SANDCGI_OAUTH": issuer.url, "SANDBOX_TENANTS_FILE": site.path("run/tenants.ini"),
            "SANDCGI_OAUTH_LIMITS": "groups", "SANDCGI_OAUTH_INTROSPECT": issuer.url + "/introspect",
            "SANDCGI_OAUTH_CLIENT_FILE": site.path("run/client"), "SANDCGI_LOG_LEVEL": "debug", **settings}
        if os.geteuid() == 0:
            self.environment |= {"SANDCGI_USER": "nobody" if "nobody" in (p.pw_name for p in pwd.getpwall()) else "www-data",
                                 "SANDCGI_LISTEN_GROUP": "www-data"}
        self.start()

    def start(self):
        with open(self.site.path("log/sandcgi.log"), "ab") as log:
            self.process = subprocess.Popen([BINARY, "serve"], env=self.environment, stdout=log, stderr=log)
        for _ in range(400):
            if os.path.exists(self.site.path("run/judge.sock")):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError("sandcgi did not start: " + self.site.log("sandcgi.log"))

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


class World:
    def __init__(self, **settings):
        self.issuer = Issuer()
        self.site = Site()
        self.site.url = f"http://localhost:{self.site.http}"
        self.site.render(JUDGE="unix:" + self.site.path("run/judge.sock"), PUBLIC_URL=self.site.url, PROFILES="runner", **settings.pop("nginx", {}))
        self.server = Server(self.site, self.issuer, **settings)
        self.site.start()

    def token(self, **claims):
        return self.issuer.key.sign(self.issuer.claims(self.site.url + "/mcp", **claims))

    def stop(self):
        self.site.stop()
        self.server.stop()
        self.issuer.close()


def fault(answer):
    return answer.status, answer.header("www-authenticate").partition('error_description="')[2].partition('"')[0]


def params(answer):
    return dict(json.loads(answer.body)["params"]) if answer.status == 200 else {"status": answer.status, "fault": fault(answer)}


def kept_verdicts(checks, world):
    """What nginx keeps of an accepted JWT admits no other token."""
    site, token = world.site, world.token(sub="kept", jti="of this token alone")
    head, body, signature = token.split(".")
    other = world.token(sub="root", scope="admin").split(".")[1]
    another = "B" if signature[0] == "A" else "A"
    folder = site.path("tmp/sandcgi-judged")
    refused = (401, "the signature of the token is not valid")

    checks.equal("a forged token before the true one", fault(site.call(token=".".join((head, other, signature)))), refused)
    before = set(os.listdir(folder))
    checks.equal("the true one, in several ways to write it",
                 [params(site.request("POST", "/mcp", b"{}", [("Authorization", scheme + token)])).get("SANDCGI_TENANT")
                  for scheme in ("Bearer ", "bearer ", "BEARER   ", "Bearer ")], ["kept"] * 4)
    new = set(os.listdir(folder)) - before
    checks.equal("one answer is kept", len(new), 1)
    with open(os.path.join(folder, *new), "rb") as file:
        kept = file.read()
    checks.check("it is the verdict", b"Sandcgi-Row: kept run,files\r\n" in kept and b"Sandcgi-Mark: " in kept, kept)
    checks.check("of the token it has the end alone", signature[-22:].encode() in kept and signature[-23:].encode() not in kept and body.encode() not in kept, kept)
    checks.equal("its folder is nginx's", os.stat(folder).st_mode & 0o777, 0o700)
    for name, forged in (("other claims", (head, other, signature)), ("another head", (head[:-1] + "A", body, signature)),
                         ("another beginning of the signature", (head, body, another + signature[1:])), ("nothing but the end", ("e30", "e30", signature[-30:]))):
        checks.equal(f"{name} and the same end: 401", site.call(token=".".join(forged)).status, 401)
    checks.equal("with the reason", fault(site.call(token=".".join((head, other, signature)))), refused)
    checks.equal("the true one counts still", params(site.call(token=token)).get("SANDCGI_TENANT"), "kept")


def oauth(checks):
    world = World()
    site, issuer = world.site, world.issuer
    try:
        metadata = f'resource_metadata="{site.url}/.well-known/oauth-protected-resource/mcp"'
        for name, token in (("none", None), ("a wrong static one", "scg_abcdefgh_" + "x" * 43)):
            answer = site.call(token=token)
            checks.equal(f"{name}: 401", answer.status, 401)
            checks.check(f"{name}: the challenge names metadata and scopes", metadata in answer.header("www-authenticate") and
                         'scope="run files"' in answer.header("www-authenticate"), answer.header("www-authenticate"))
        checks.equal("a static token stays valid", params(site.call())["SANDCGI_TENANT"], "default")

        own = ".".join(["0123456789abcdefghijklmnopqrstuv"] * 3)
        site.token_command("add", "--tenant", "owner", "--token-stdin", stdin=own)
        site.reload()
        checks.equal("one that has the form of a JWT is no access token", [params(site.call(token=own)).get(n) for n in ("SANDCGI_TENANT", "SANDCGI_BEARER")], ["owner", None])

        token = world.token()
        got = params(site.call(token=token))
        checks.equal("an access token names tenant and scopes", [got.get(n) for n in ("SANDCGI_TENANT", "SANDCGI_SCOPES", "SANDCGI_BEARER", "SANDCGI_LIMITS")],
                     ["alice", "run,files", "oauth", None])
        checks.check("the worker does not see the token", token not in str(got), got)
        got = params(site.call(token=world.token(groups=["no section", "students"])))
        checks.equal("a group names a section of limits", got.get("SANDCGI_LIMITS"), "students")
        got = params(site.request("GET", "/mcp", token=token))
        checks.equal("a stream goes to the hub", (len(site.hub.requests), got.get("SANDCGI_TENANT"), got.get("SANDCGI_BEARER")), (1, "alice", "oauth"))
        got = params(site.request("POST", "/mcp/runner", b"{}", token=token))
        checks.equal("another place has its tools", (got.get("SANDCGI_TOOLS"), got.get("REQUEST_URI")), ("runner", "/mcp/runner"))
        forged = [("Sandcgi-Row", "root run"), ("Sandcgi-Limits", "x"), ("Sandcgi-Judged-Row", "root run")]
        checks.equal("headers of the client make no tenant", site.call(token="not-a-token-0123456789", headers=forged).status, 401)

        kept_verdicts(checks, world)

        before = len(issuer.fetches)
        for name, token, why in (
                ("expired", world.token(exp=1000), "the token has expired"),
                ("for another server", world.token(aud="https://evil.example/mcp"), "the token is for another server (aud is not this one)"),
                ("with a hostile tenant", world.token(sub='a"\r\nSandcgi-Row: root run'), None),
                ("unsigned", issuer.key.sign(issuer.claims(site.url), alg="none"), "the token must be signed with RS256, ES256 or EdDSA")):
            status, reason = fault(site.call(token=token))
            checks.equal(f"a token {name}: 401", status, 401)
            checks.check(f"a token {name}: with its reason", reason == why if why else "no tenant's name" in reason, reason)
        checks.equal("none of them was a fetch", len(issuer.fetches), before)
        checks.equal("a header that is too large", site.call(token="eyJ" + "a" * 9000).status in (400, 401), True)

        stranger = Key("stranger")
        reasons = {fault(site.call(token=stranger.sign(issuer.claims(site.url + "/mcp"), kid=f"k{i}"))) for i in range(40)}
        checks.equal("a storm of unknown keys: each is refused", reasons, {(401, "the issuer has no such key (kid, alg)")})
        checks.check("a storm of unknown keys: three fetches", len(issuer.fetches) - before <= 3, issuer.fetches[before:])
        checks.equal("jku is not looked at", (fault(site.call(token=stranger.sign(issuer.claims(site.url + "/mcp"), kid="one", jku=issuer.url + "/evil")))[1],
                                              "/evil" in issuer.fetches), ("the signature of the token is not valid", False))

        issuer.active["opaque+token/0123456789=="] = {"sub": "bob", "scope": "files", "exp": int(time.time()) + 600}
        before = len(issuer.fetches)
        tenants = {params(site.call(token="opaque+token/0123456789=="))["SANDCGI_TENANT"] for _ in range(10)}
        checks.equal("the issuer is asked about another token, once", (tenants, issuer.fetches[before:]), ({"bob"}, ["/introspect"]))
        checks.equal("one that is not active", {fault(site.call(token="opaque-token-of-nobody")) for _ in range(10)}, {(401, "the token is not active")})
        checks.equal("is asked about once, too", issuer.fetches[before:], ["/introspect"] * 2)

        logs = site.log("access.log") + site.log("nginx-error.log") + site.log("sandcgi.log")
        checks.check("no token is in a log", not any(word in logs for word in (token, "opaque", "eyJ")), "")
        grep = subprocess.run(["grep", "-rlaE", "eyJ[A-Za-z0-9_-]{20}|opaque.token", site.root], check=False, capture_output=True, text=True)
        checks.equal("no token is on the disk", grep.stdout, "")
        world.server.process.send_signal(1)
        checks.equal("a reload keeps tokens valid", [params(site.call(token=world.token())).get("SANDCGI_TENANT") for _ in range(20)], ["alice"] * 20)
    finally:
        world.stop()


def oauth_real_worker(checks):
    world = World()
    site, issuer = world.site, world.issuer
    try:
        with open(site.path("run/secret.conf"), "w", encoding="ascii") as out:
            out.write(f'fastcgi_param SANDCGI_SECRET "{"ab" * 32}";\n')
        site.render(JUDGE="unix:" + site.path("run/judge.sock"), PUBLIC_URL=site.url, BACKEND="unix:" + site.path("run/real.sock"), PROFILES="runner")
        site.reload()
        for path, resource in (("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/api", "/mcp/api"), ("/mcp/runner", "/mcp/runner")):
            answer = site.request("GET", "/.well-known/oauth-protected-resource" + path)
            body = json.loads(answer.body) if answer.status == 200 else {}
            checks.equal(f"metadata of {path or '/'}", (answer.status, body.get("resource"), body.get("authorization_servers"), body.get("scopes_supported"),
                                                      answer.header("access-control-allow-origin")),
                         (200, site.url + resource, [issuer.url], ["run", "files", "network", "admin"], "*"))
        checks.equal("no metadata of another place", site.request("GET", "/.well-known/oauth-protected-resource/files").status, 404)
        checks.equal("a browser may ask for metadata", site.request("OPTIONS", "/.well-known/oauth-protected-resource/mcp").status, 204)

        def call(method, scope, path="/mcp/all", **named):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": named}
            return site.request("POST", path, json.dumps(body).encode(), HEADERS, token=world.token(scope=scope))

        tools = {tool["name"] for tool in json.loads(call("tools/list", "run").body)["result"]["tools"]}
        checks.check("tools that need more scopes are listed", {"run_code", "read_file", "import_url", "list_runs"} <= tools, tools)
        answer = call("tools/call", "run", name="import_url", arguments={"url": "https://example.org/x"})
        checks.equal("a call that needs more is refused", answer.status, 403)
        checks.check("with the scopes for the next step", 'error="insufficient_scope"' in answer.header("www-authenticate") and
                     'scope="run files network"' in answer.header("www-authenticate") and "resource_metadata=" in answer.header("www-authenticate"),
                     answer.header("www-authenticate"))
        checks.equal("resources need files", call("resources/list", "run").status, 403)
        checks.equal("admin is a scope", call("tools/call", "run files", name="list_runs", arguments={}).status, 403)
        checks.equal("another server's tools need two", call("tools/list", "run", path="/mcp/runner").status, 403)
        checks.equal("a token without scopes may look", call("tools/list", "").status, 200)
        tools = {tool["name"] for tool in json.loads(site.request("POST", "/mcp/all", LIST, HEADERS, token=world.token(groups=["students"])).body)["result"]["tools"]}
        checks.check("limits of the group apply", "move_file" in tools and "list_runs" not in tools, tools)
    finally:
        world.stop()


def oauth_workers_check(checks):
    """SANDCGI_AUTH=token: as behind Apache; workers ask the judge."""
    world = World(SANDCGI_AUTH="token", MCP_API_TOKEN="0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    site = world.site
    try:
        def call(token, method="ping"):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
            status, headers, text = fcgi.request(site.path("run/real.sock"), {
                "REQUEST_URI": "/mcp", "HTTP_HOST": "localhost", "HTTP_MCP_PROTOCOL_VERSION": "2025-11-25",
                "HTTP_ACCEPT": "application/json, text/event-stream", "HTTP_AUTHORIZATION": "Bearer " + token}, body)
            return status, headers.get("www-authenticate", ""), text

        checks.equal("a static token", call("0f1e2d3c4b5a69788796a5b4c3d2e1f0")[0], 200)
        checks.equal("an access token", [call(world.token())[0] for _ in range(20)], [200] * 20)
        status, challenge, _ = call(world.token(exp=1000))
        checks.equal("one that has expired", status, 401)
        checks.check("with reason and metadata", 'error_description="the token has expired"' in challenge and
                     f'resource_metadata="{site.url}/.well-known/oauth-protected-resource/mcp"' in challenge, challenge)
        checks.equal("a call that needs more", call(world.token(scope="run"), "resources/list")[0], 403)
    finally:
        world.stop()


def oauth_bad_issuer(checks):
    world = World()
    site, issuer = world.site, world.issuer
    try:
        checks.equal("the keys are there", params(site.call(token=world.token())).get("SANDCGI_TENANT"), "alice")
        for mode in ("error", "huge", "redirect", "poisoned", "slow"):
            issuer.mode = mode
            world.server.stop()
            world.server.start()
            reason = ""
            for _ in range(100):
                status, reason = fault(site.call(token=world.token()))
                if status == 401:
                    break
                time.sleep(0.1)
            if mode == "slow":
                checks.equal("keys that come late are waited for", params(site.call(token=world.token())).get("SANDCGI_TENANT"), "alice")
            else:
                checks.equal(f"keys: {mode}", (status, reason), (401, "the keys of the issuer could not be fetched"))
        issuer.mode = "poisoned"
        late = Key("late")
        checks.equal("keys that are known stay", (fault(site.call(token=late.sign(issuer.claims(site.url + "/mcp"))))[0],
                                                 params(site.call(token=world.token(jti="x"))).get("SANDCGI_TENANT")), (401, "alice"))
    finally:
        world.stop()


GROUPS = [oauth, oauth_real_worker, oauth_workers_check, oauth_bad_issuer]

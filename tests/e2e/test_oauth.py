"""The builtin authorization server: the whole flow, and what a hostile client, site or network tries with it."""
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import threading
import time
import urllib.parse

import fcgi
import procs
import sites
from harness import IS_ROOT, Skip, at_module_end, check, contains, equal, new_folder, test, wait_until
from oauth import FORM, PASSPHRASE, REDIRECT, OAuth, claims, pkce, refused, server, set_passphrase, shown


_shared = []


def _site():
    """The server that these tests share; it ends with them."""
    if not _shared:
        site = sites.Site({"SANDCGI_OAUTH": "builtin"})
        at_module_end(site.stop)
        at_module_end(_shared.clear)
        equal(set_passphrase(site).returncode, 0, "sandcgi oauth passphrase")
        _shared.append(site.start())
    return _shared[0]


def client(**more):
    one = OAuth(_site())
    one.register(**more)
    return one


def own_client(settings=None):
    one = OAuth(server(settings))
    one.register()
    return one


def answers(one):
    try:
        return one.get("/.well-known/oauth-authorization-server").status == 200
    except OSError:
        return False


# ---- what must work ----


@test("the server describes itself where clients look, and its key is where it says")
def _():
    site = _site()
    one = OAuth(site)
    for name in ("oauth-authorization-server", "openid-configuration"):
        answer = one.get(f"/.well-known/{name}")
        equal(answer.status, 200, name)
        equal(answer.headers["Access-Control-Allow-Origin"], "*", "CORS")
        told = answer.json()
        equal(told["issuer"], site.settings["PUBLIC_BASE_URL"], "issuer")
        equal(told["code_challenge_methods_supported"], ["S256"], "PKCE")
        equal(told["authorization_response_iss_parameter_supported"], True, "RFC 9207")
        equal(told["client_id_metadata_document_supported"], True, "client id metadata documents")
        for endpoint in ("authorization", "token", "registration", "revocation"):
            contains(told[endpoint + "_endpoint"], site.settings["PUBLIC_BASE_URL"] + "/oauth/", endpoint)
    key, = one.get(urllib.parse.urlsplit(told["jwks_uri"]).path).json()["keys"]
    equal({name: key[name] for name in ("kty", "crv", "alg", "use")}, {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig"}, "the key")
    check("d" not in key, "the private key is not shown")


@test("a client registers, the operator allows it, and it gets tokens, new ones for each refresh token, and loses all by revocation")
def _():
    one = client(name="Claude")
    code, verifier = one.code(tenant="team-a")
    answer = one.redeem(code, verifier, resource=one.issuer + "/mcp")
    equal(answer.status, 200, f"{answer.body}")
    got = answer.json()
    equal((got["token_type"], got["scope"], got["expires_in"]), ("Bearer", "run files", 3600), "the answer")
    told = claims(got["access_token"])
    equal({name: told[name] for name in ("iss", "aud", "client_id", "scope", "tenant")},
          {"iss": one.issuer, "aud": one.issuer + "/mcp", "client_id": one.client_id, "scope": "run files", "tenant": "team-a"}, "the claims")
    check(0 < told["exp"] - told["iat"] <= 3600 and told["jti"] and told["sub"], f"the claims {told}")
    again = one.refresh(got["refresh_token"], scope="run").json()
    check(again["refresh_token"] != got["refresh_token"], "the refresh token is another one")
    equal(claims(again["access_token"])["scope"], "run", "fewer scopes")
    equal(claims(again["access_token"])["gid"], told["gid"], "the grant")
    equal(claims(one.refresh(again["refresh_token"]).json()["access_token"])["scope"], "run files", "all scopes again")
    equal(one.post("/oauth/revoke", {"token": got["access_token"]}).status, 200, "revocation")
    check(told["gid"] in one.revoked(), "the grant is in the list of revoked ones")


@test("an access token opens /mcp for its tenant and scopes, and no longer than its grant; metadata and the challenge lead to it", core=True)
def _():
    one = client()
    site = one.site
    caller = site.client()
    answer = caller.with_token(None).post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, path="/mcp")
    equal(answer.status, 401, "without a token")
    place = re.search(r'resource_metadata="([^"]*)"', answer.headers["WWW-Authenticate"]).group(1)
    told = one.get(urllib.parse.urlsplit(place).path).json()
    equal((told["resource"], told["authorization_servers"]), (one.issuer + "/mcp", [one.issuer]), "the metadata")
    got = one.redeem(*one.code(tenant="oauth-tenant", resource=told["resource"])).json()
    allowed = caller.with_token(got["access_token"])
    allowed.request("tools/list")
    conversation = allowed.structured("write_file", {"filename": "a.txt", "text": "of the tenant"})["conversationId"]
    other = caller.with_token(one.tokens()["access_token"])
    equal(other.structured("list_files", {"conversationId": conversation})["files"], [], "another tenant's view")
    narrow = caller.with_token(one.refresh(got["refresh_token"], scope="files").json()["access_token"])
    equal(narrow.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": {"language": "bash", "code": "true"}}}).status,
          403, "a scope that is missing")
    equal(one.post("/oauth/revoke", {"token": got["access_token"]}).status, 200, "revocation")
    wait_until(lambda: allowed.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401, 20, "the token is refused")
    wait_until(lambda: narrow.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401, 20, "the grant's other token, too")


@test("a grant and a code outlive a restart, and a process of it that is killed, which is replaced")
def _():
    one = own_client()
    got = one.tokens()
    code, verifier = one.code()
    site = one.site
    key = one.get("/oauth/jwks.json").json()
    procs.end(site.process, 40)
    site.start_server()
    site.wait_healthy()
    equal(one.get("/oauth/jwks.json").json(), key, "the key")
    equal(one.redeem(code, verifier).status, 200, "a code of before")
    got = one.refresh(got["refresh_token"]).json()
    for pid in site.processes():
        if f"{site.folder}/run/oauth.sock" in procs.unix_sockets(pid):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: answers(one), 30, "another one answers")
    equal(one.refresh(got["refresh_token"]).status, 200, "a refresh token of before")


@test("server/discover and initialize tell the user's assistant where others are given the server's URL")
def _():
    for site, told in ((_site(), True), (sites.shared(), False)):
        caller = site.client()
        for found in (caller.modern("server/discover").json()["result"], caller.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).json()["result"]):
            words = found["instructions"]
            equal(f"its URL is {site.settings['PUBLIC_BASE_URL']}/mcp" in words and "ChatGPT" in words, told, words)
            check(words.startswith("run_code runs programs in a sandbox"), words)


@test("without SANDCGI_OAUTH nothing of it is there")
def _():
    one = OAuth(sites.shared())
    for path in ("/oauth/authorize", "/oauth/token", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        equal(one.get(path).status, 404, path)
    check(not os.path.exists(f"{one.site.root}/.oauth"), "there is no folder")


@test("without a passphrase, or with SANDCGI_OAUTH_AUDIENCE, the start is refused in one line, and so is the check; a weak passphrase is not taken")
def _():
    site = sites.own({"SANDCGI_OAUTH": "builtin"}, start=False)

    def said(command):
        done = subprocess.run([site.binary, command, "--config", site.config], capture_output=True, text=True, check=False, timeout=30, env=site.tool_environment())
        equal((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        return done.stderr
    for command in ("serve", "check"):
        contains(said(command), "oauth passphrase --config ", "the reason")
    for text, why in (("short", "12 to 1024 characters"), ("a" * 40, "different characters"), ("x" * 2000, "over 1024")):
        done = set_passphrase(site, text)
        equal(done.returncode, 1, text[:10])
        contains(done.stderr, why, "the reason")
    equal(set_passphrase(site).returncode, 0, "a good one")
    equal(stat.S_IMODE(os.stat(f"{site.root}/.oauth/passphrase").st_mode), 0o600, "its mode")
    site.settings["SANDCGI_OAUTH_AUDIENCE"] = "https://other.example.org/mcp"
    site.write_config()
    for command in ("serve", "check"):
        contains(said(command), "SANDCGI_OAUTH_AUDIENCE is not for SANDCGI_OAUTH=builtin", "the reason")


@test("below a path everything is below it, and the well-known documents are at both places")
def _():
    site = sites.own({"SANDCGI_OAUTH": "builtin"}, start=False, nginx={"PREFIX": "/some/path"})
    site.settings["PUBLIC_BASE_URL"] = site.base_url + "/some/path"
    site.write_config()
    equal(set_passphrase(site).returncode, 0, "the passphrase")
    site.start(until_healthy=False)
    one = OAuth(site, "/some/path")
    wait_until(lambda: answers(one), 30, "the server answers")
    told = OAuth(site).get("/.well-known/oauth-authorization-server/some/path").json()
    equal(told["issuer"], site.base_url + "/some/path", "issuer")
    equal(told["token_endpoint"], site.base_url + "/some/path/oauth/token", "an endpoint")
    one.register()
    equal(claims(one.tokens()["access_token"])["aud"], site.base_url + "/some/path/mcp", "aud")
    equal(OAuth(site).get("/oauth/token").status, 404, "outside of the path")


@test("sandcgi token lists grants and revokes them, by id and by tenant")
def _():
    one = client(name="Grant of a list")
    ids = [claims(one.tokens(**{})["access_token"])["gid"] for _ in range(2)]
    third = claims(one.redeem(*one.code(tenant="of-its-own")).json()["access_token"])["gid"]
    site = one.site

    def token(*words):
        return subprocess.run([site.binary, "token", *words, "--no-reload", "--config", site.config], capture_output=True, text=True, check=False,
                              env=site.tool_environment() | {"SANDCGI_TOKENS_FILE": f"{site.folder}/conf/tokens.map"})
    listed = {row["id"]: row for row in json.loads(token("list", "--json").stdout)}
    for one_id in (*ids, third):
        equal(listed[one_id]["client"]["name"], "Grant of a list", "the client")
        equal(listed[one_id]["scopes"], ["run", "files"], "scopes")
    contains(token("list").stdout, "(OAuth: Grant of a list, client.example.org)", "the list for people")
    equal(token("revoke", ids[0]).returncode, 0, "revoke")
    equal(token("revoke", "--tenant", "of-its-own").returncode, 0, "revoke a tenant's")
    equal([ids[0] in one.revoked(), ids[1] in one.revoked(), third in one.revoked()], [True, False, True], "the revoked")
    told = re.findall(r" audit=oauth-revoke tenant=(\S+) grant=(\S+) uid=\d+ ", site.log())
    check({("default", ids[0]), ("of-its-own", third)} <= set(told), f"lines of the log: {told}")
    check(ids[0] not in token("list").stdout, "a revoked grant is not listed")
    equal(token("revoke", ids[0]).returncode, 1, "once more")


@test("its process has the workers' account, no engine and no broker, and its files are closed to others")
def _():
    site = client().site
    found = [pid for pid in site.processes() if f"{site.folder}/run/oauth.sock" in procs.unix_sockets(pid)]
    equal(len(found), 2, "processes of the authorization server")
    for pid in found:
        opened = " ".join(procs.open_files(pid))
        check(site.root + "/.oauth" in opened, f"its folder is open: {opened}")
        check("broker.sock" not in " ".join(procs.unix_sockets(pid)), "no broker")
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            status = file.read()
        contains(status, "NoNewPrivs:\t1", "no_new_privs")
        contains(status, "Seccomp:\t2", "seccomp")
        if sites.IS_ROOT:
            check(not re.search(r"^Uid:\t0", status, re.M), "not root")
    judge, = [pid for pid in site.processes() if f"{site.folder}/run/judge.sock" in procs.unix_sockets(pid)]
    opened = [name for name in procs.open_files(judge) if ".oauth" in name]
    equal(opened, [f"{site.root}/.oauth/public"], "what the judge has open of it")
    for name in ("", "public"):
        equal(stat.S_IMODE(os.stat(f"{site.root}/.oauth/{name}").st_mode), 0o700, "a folder's mode")
    for name in ("key.pem", "secret", "state.json", "passphrase", "public/jwks.json"):
        equal(stat.S_IMODE(os.stat(f"{site.root}/.oauth/{name}").st_mode), 0o600, name)


# ---- codes ----


@test("hostile: of many that redeem one code at once, one at most gets tokens, and those are revoked: it was used twice", core=True)
def _():
    one = client()
    code, verifier = one.code()
    got = []

    def redeem():
        other = OAuth(one.site)
        other.client_id = one.client_id
        got.append(other.redeem(code, verifier))
    threads = [threading.Thread(target=redeem) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(sorted(answer.status for answer in got), [200] + [400] * 7, "statuses")
    tokens = next(answer.json() for answer in got if answer.status == 200)
    check(claims(tokens["access_token"])["gid"] in one.revoked(), "the grant is revoked")
    refused(one.refresh(tokens["refresh_token"]), "invalid_grant")


@test("hostile: a code without its verifier, for another client, redirect URI or resource is refused, and a wrong verifier is all that there is")
def _():
    one, other = client(), client()
    code, verifier = one.code()
    refused(one.redeem(code, None), "invalid_request")
    refused(one.redeem(code, "short"), "invalid_request")
    refused(one.redeem(code, verifier, redirect_uri=None), "invalid_request")
    refused(other.redeem(code, verifier), "invalid_grant")
    equal(one.redeem(code, verifier).status, 200, "the right one still can: those have ended nothing")
    code, verifier = one.code()
    refused(one.redeem(code, pkce()[0]), "invalid_grant")
    refused(one.redeem(code, verifier), "invalid_grant")
    refused(one.redeem(*one.code(), redirect_uri=REDIRECT + "/"), "invalid_grant")
    refused(one.redeem(*one.code(), resource="https://elsewhere.example.org/mcp"), "invalid_target")


@test("hostile: no PKCE and plain PKCE are refused (downgrade)")
def _():
    one = client()
    verifier, challenge = pkce()
    for changes in ({"code_challenge": None}, {"code_challenge_method": None}, {"code_challenge_method": "plain"},
                    {"code_challenge": verifier}, {"code_challenge": challenge + "="}, {"code_challenge": challenge[:-1] + "+"}):
        shown(one.page(challenge, **changes), 400, "PKCE")


# ---- refresh tokens ----


@test("hostile: a refresh token that is another client's, for more than was allowed or none ends nothing; one that is used twice revokes its grant")
def _():
    one, other = client(), client()
    first = one.tokens()
    for text in ("", "x", first["refresh_token"] + "0", first["access_token"], "a" * 8000):
        answer = one.refresh(text)
        check(answer.status == 400 and answer.json()["error"] in ("invalid_grant", "invalid_request"), f"{text[:60]}: {answer.body}")
    refused(other.refresh(first["refresh_token"]), "invalid_grant")
    refused(one.refresh(first["refresh_token"], scope="run files network"), "invalid_scope")
    refused(one.refresh(first["refresh_token"], resource=one.issuer + "/mcp/all"), "invalid_target")
    second = one.refresh(first["refresh_token"]).json()
    refused(one.refresh(first["refresh_token"]), "invalid_grant")
    refused(one.refresh(second["refresh_token"]), "invalid_grant")
    check(claims(first["access_token"])["gid"] in one.revoked(), "the grant is revoked")
    contains(one.site.log(), "oauth-reuse", "the log")


@test("hostile: revocation of what is unknown says nothing, and of a token that was altered ends nothing")
def _():
    one = client()
    got = one.tokens()
    head, body, signature = got["access_token"].split(".")
    for text in ("x", "a.b.c", f"{head}.{body}.{signature[:-4]}AAAA", f"{head}.{body}.", got["refresh_token"] + "0", "." * 100):
        answer = one.post("/oauth/revoke", {"token": text})
        equal((answer.status, answer.body), (200, b""), text[:40])
    refused(one.post("/oauth/revoke", {}), "invalid_request")
    equal(one.refresh(got["refresh_token"]).status, 200, "the grant goes on")


# ---- redirect URIs ----


@test("hostile: only a registered redirect URI is gone back to, byte by byte but for a loopback's port")
def _():
    one = client(redirects=(REDIRECT, "https://client.example.org/other?a=b", "http://127.0.0.1/callback"))
    challenge = pkce()[1]
    for uri in (REDIRECT + "/", REDIRECT + "?x=1", REDIRECT.upper(), "https://client.example.org@evil.example/callback", "//evil.example", "javascript:alert(1)",
                " " + REDIRECT, REDIRECT + "%0d%0aX: y", "http://127.0.0.1:4711/other", "http://127.0.0.1:1@evil.example/callback"):
        shown(one.page(challenge, redirect_uri=uri), 400, "redirect_uri")
    shown(one.page(challenge, redirect_uri=None), 400, "redirect_uri")  # there are several
    equal(one.page(challenge, redirect_uri="http://127.0.0.1:4711/callback").status, 200, "another port")
    result = one.answer(one.page(challenge, redirect_uri="https://client.example.org/other?a=b")).result()
    equal(result["a"], "b", "the URI's own query stays")


@test("hostile: a stranger's registration is no open redirector: nothing leads away before the operator has said so")
def _():
    one = client(redirects=("https://evil.example/",))
    challenge = pkce()[1]
    for changes in ({}, {"response_type": "token"}, {"response_mode": "fragment"}, {"scope": "nothing"}, {"code_challenge": None},
                    {"resource": "https://elsewhere.example.org"}, {"prompt": "none"}, {"request": "x"}, {"request_uri": "https://evil.example/"}):
        page = one.page(challenge, redirect_uri="https://evil.example/", **changes)
        check(page.target is None and not page.headers.get("Location") and 'href="https://evil' not in page.text, f"{changes} leads away")


# ---- the page ----


@test("hostile: the page is framed by nobody, runs no script, and is kept by nobody")
def _():
    one = client()
    page = one.page(pkce()[1])
    policy = page.headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "style-src 'sha256-"):
        contains(policy, part, "Content-Security-Policy")
    check("unsafe" not in policy and "script" not in policy, policy)
    equal([page.headers[name] for name in ("X-Frame-Options", "Cache-Control", "X-Content-Type-Options")], ["DENY", "no-store", "nosniff"], "headers")
    check("<script" not in page.text, "no script")
    equal(page.headers.get("Access-Control-Allow-Origin"), None, "CORS")
    cookie = page.headers["Set-Cookie"]
    for part in ("__Host-", "; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/"):
        contains(cookie, part, "Set-Cookie")


@test("hostile: a form from elsewhere, without the cookie, with another or a planted one, or of another page allows nothing (CSRF, session fixation)")
def _():
    one = client()
    challenge = pkce()[1]
    page, other = one.page(challenge), one.page(challenge, scope="run files network")
    planted = "__Host-sandcgi_consent=" + "a" * 64
    again = one.get("/oauth/authorize?" + one.query(challenge), {"Cookie": planted})
    check(planted not in again.headers["Set-Cookie"], "a cookie that a browser brings along is never taken up")
    check(page.cookie != again.headers["Set-Cookie"].partition(";")[0], "each page has its own")
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": one.issuer + ".evil.example"}, {"Origin": one.issuer[:-1]}):
        shown(one.answer(page, headers), 403, "another site")
    for headers in ({"Cookie": None}, {"Cookie": other.cookie}, {"Cookie": f"{page.cookie}; {other.cookie}"}, {"Cookie": page.cookie + "0"}, {"Cookie": planted},
                    {"Cookie": page.cookie.replace("__Host-", "")}):
        shown(one.answer(page, headers), 403, "came from elsewhere")
    for changes in ({"proof": "0" * 64}, {"proof": None}, {"proof": other.fields["proof"]}, {"made": "1700000000"}, {"made": None},
                    {"made": str(int(page.fields["made"]) + 1)}, {"request": other.fields["request"]}):
        shown(one.answer(page, **changes), 403, "came from elsewhere")
    contains(one.answer(page).result(), "code", "the page itself")


@test("hostile: the client is told who has answered, with its state, also of a denial, which needs the page, too (mix-up)")
def _():
    one = client()
    page = one.page(pkce()[1], state="x&y=<z>")
    shown(one.answer(page, {"Cookie": None}, act="deny", passphrase=None), 403, "came from elsewhere")
    equal(one.answer(page, act="deny", passphrase=None).result(), {"error": "access_denied", "state": "x&y=<z>", "iss": one.issuer}, "what the client gets")
    result = one.answer(page).result()
    equal((result["iss"], result["state"]), (one.issuer, "x&y=<z>"), "iss and state")


@test("hostile: names, states and parameters that are HTML stay text (XSS)")
def _():
    bad = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"
    one = client(name=bad)
    page = one.page(pkce()[1], state=bad)
    check("<script" not in page.text and "<img" not in page.text, "nothing of it is markup")
    contains(page.text, "&lt;script&gt;", "the name is shown")
    back = one.answer(page)
    check("<script" not in back.text and back.result()["state"] == bad, "the state comes back as it was")
    for field in ("client_id", "response_type", "scope", "resource", "redirect_uri", "code_challenge_method"):
        page = one.page(pkce()[1], **{field: bad})
        check(page.status == 400 and "<script" not in page.text and "<img" not in page.text, f"{field}: {page.status}")
    refused(one.post_json("/oauth/register", {"redirect_uris": [REDIRECT], "client_name": "a" * 101}), "invalid_client_metadata")


@test("hostile: a tenant's name is one, whatever the form says")
def _():
    one = client()
    for tenant in ("../x", "a b", "a" * 65, "-x", "ä", "<b>"):
        shown(one.answer(one.page(pkce()[1]), tenant=tenant), 400, "A tenant's name")


# ---- what is asked for ----


@test("hostile: a token is for this server only (RFC 8707)")
def _():
    one = client()
    challenge = pkce()[1]
    for resource in ("https://elsewhere.example.org/mcp", one.issuer + ".evil.example/mcp", one.issuer + "/mcp/../x", "x"):
        shown(one.page(challenge, resource=resource), 400, "resource")
    for resource, audience in ((one.issuer + "/mcp/all", "/mcp/all"), (None, "/mcp")):
        equal(claims(one.tokens(resource=resource)["access_token"])["aud"], one.issuer + audience, str(resource))


@test("hostile: scopes that there are not are left out, and nothing but such is refused")
def _():
    one = client()
    equal(one.tokens(scope="files offline_access openid")["scope"], "files", "scope")
    shown(one.page(pkce()[1], scope="openid root"), 400, "scope")
    contains(one.tokens(scope=None)["scope"], "run files", "no scope asked for")


@test("hostile: huge, double, broken and countless parameters are refused, never a failure; and so are redirect URIs that a browser would execute")
def _():
    one = client()
    challenge = pkce()[1]
    query = one.query(challenge)
    for bad, status in (("&state=" + "x" * 3000, 400), ("&client_id=x", 400), ("&x=%zz", 400), ("&" + "&".join(f"p{i}=1" for i in range(60)), 400),
                        ("&x=" + "y" * 12000, 414), ("&&&", 200), ("&x", 200)):
        equal(one.get("/oauth/authorize?" + query + bad).status, status, bad[:30])
    shown(one.page(challenge, state="x" * 2500), 400, "state is too long")
    equal(one.http.http("POST", "/oauth/token", b"x" * 40000, {"Content-Type": FORM}).status, 413, "a large body")
    for body in (b"", b"=", b"grant_type=%zz", b"grant_type=x&grant_type=y", b"&" * 30000, "grant_type=ä".encode("latin-1")):
        refused(one.http.http("POST", "/oauth/token", body, {"Content-Type": FORM}), "invalid_request")
    refused(one.http.http("POST", "/oauth/token", b"grant_type=password&username=a&password=b", {"Content-Type": FORM}), "unsupported_grant_type")
    refused(one.http.http("POST", "/oauth/token", b'{"grant_type":"refresh_token"}', {"Content-Type": "application/json"}), "invalid_request")
    for body in (b"", b"{", b"[]", b"7", b'{"redirect_uris":[]}', b"[" * 5000, b'{"redirect_uris":["https://a/"]}' * 2,
                 json.dumps({"redirect_uris": [REDIRECT] * 17}).encode(), json.dumps({"redirect_uris": [REDIRECT + "a" * 1500] * 4}).encode(),
                 b'{"redirect_uris":["javascript://x/%0aalert(1)"]}', json.dumps({"redirect_uris": ["https://x/" + "a" * 3000]}).encode()):
        answer = one.http.http("POST", "/oauth/register", body, {"Content-Type": "application/json"})
        check(answer.status == 400 and answer.json()["error"].startswith("invalid_"), f"{body[:40]}: {answer.status} {answer.body}")
    equal(one.post_json("/oauth/register", {"redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"]}).status, 201, "a native program's scheme")


@test("hostile: methods and places that there are not")
def _():
    one = client()
    for path, allowed in (("/oauth/token", "POST"), ("/oauth/register", "POST"), ("/oauth/revoke", "POST"), ("/oauth/jwks.json", "GET")):
        answer = one.http.http("DELETE", path)
        equal((answer.status, answer.headers["Allow"]), (405, allowed), path)
    for path in ("/oauth/", "/oauth/x", "/oauth/token/x", "/oauth/../oauth/key.pem", "/oauth/authorize/", "/.well-known/oauth-authorization-server/x"):
        equal(one.get(path).status, 404, path)
    preflight = one.http.http("OPTIONS", "/oauth/token", headers={"Origin": "https://page.example", "Access-Control-Request-Method": "POST"})
    equal((preflight.status, preflight.headers["Access-Control-Allow-Origin"]), (204, "*"), "a page's preflight")
    equal(one.http.http("OPTIONS", "/oauth/authorize").status, 405, "none for the consent page")


@test("H-74: clients that register by the hundred keep no other out, and nothing is kept of them", timeout=240)
def _():
    one = own_client()
    one.tokens()
    with open(f"{one.site.root}/.oauth/state.json", encoding="utf-8") as file:
        before = file.read()
    def registered():
        status = one.post_json("/oauth/register", {"redirect_uris": [REDIRECT]}).status
        check(status in (201, 429), f"status {status}")  # 429: nginx's limit of an address
        return status == 201
    for _ in range(205):
        wait_until(registered, 30, "it registers")
    with open(f"{one.site.root}/.oauth/state.json", encoding="utf-8") as file:
        equal(file.read(), before, "the state")
    one.register()
    one.tokens()


HOST, HOST_ADDRESS = "client.example.org", "45.45.45.45"  # a public address, in networks of the test's own

SERVE_DOCUMENT = """
import http.server, os, ssl, sys
folder = sys.argv[1]
os.chdir(f"{folder}/site")
server = http.server.ThreadingHTTPServer(("", 443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
"""

# The server has a network in which there is that host alone, and knows its name and its certificate.
WITH_HOST = """
set -e
folder=$1 address=$2
shift 2
mount --bind "$folder/hosts" /etc/hosts
mount --bind "$folder/cert.pem" /etc/ssl/certs/ca-certificates.crt
setpriv --pdeathsig KILL unshare --net python3 "$folder/serve.py" "$folder" >"$folder/log" 2>&1 &
until grep -q ready "$folder/log"; do sleep 0.1; done
ip link set lo up
ip link add near type veth peer name far netns $!
ip address add "${address%.*}.1/24" dev near
ip link set near up
nsenter --net=/proc/$!/ns/net sh -c 'ip address add "$1/24" dev far && ip link set far up' - "$address"
exec "$@"
"""


def _text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _host(document):
    """Makes the host's folder."""
    folder = new_folder("host")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{folder}/key.pem",
                    "-out", f"{folder}/cert.pem", "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"], check=True, capture_output=True)
    os.mkdir(f"{folder}/site")
    for name, text in (("hosts", f"127.0.0.1 localhost\n{HOST_ADDRESS} {HOST}\n"), ("serve.py", SERVE_DOCUMENT), ("site/client.json", json.dumps(document))):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(folder, 0o755)
    return folder


@test("a client that names its metadata document is taken as that describes it: fetched from its https host, once, and kept to it")
def _():
    if not IS_ROOT:
        raise Skip("a network and a public address of the test's own need root")
    url = f"https://{HOST}/client.json"
    folder = _host({"client_id": url, "client_name": "A described client", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"})
    site = server(start=False)
    site.start_server(prefix=["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", WITH_HOST, "-", folder, HOST_ADDRESS])
    site.start_nginx()
    site.wait_healthy()
    one = OAuth(site)
    one.client_id = url
    page = one.page(pkce()[1])
    equal(page.status, 200, f"the page: {page.problem()} {_text_of(f'{folder}/log')}")
    contains(page.text, "A described client")
    contains(page.text, HOST, "the page shows the host")
    tokens = one.tokens()
    equal(one.refresh(tokens["refresh_token"]).status, 200, "refresh")
    shown(one.page(pkce()[1], redirect_uri="https://other.example.org/callback"), 400, "redirect_uri")
    equal(_text_of(f"{folder}/log").count("GET /client.json"), 1, "requests to the host")


@test("hostile: a client's address is no place to fetch from: private ones, other ports, redirects, and no second time within a minute")
def _():
    one = OAuth(_site())
    challenge = pkce()[1]
    for url in ("https://127.0.0.1/client.json", "https://localhost/client.json", "https://169.254.169.254/latest/meta-data", "https://[::1]/x", "https://10.0.0.1/x"):
        one.client_id = url
        shown(one.page(challenge), 400, "the document of this client cannot be used")
    for url in ("https://client.example.org:8443/x", "https://a/" + "b" * 2100):
        one.client_id = url
        page = one.page(challenge)
        check(page.status == 400 and "cannot be used" not in page.text, f"{url[:60]} is refused without a fetch: {page.problem()}")
    one.client_id = "https://127.0.0.1/client.json"
    start = time.monotonic()
    shown(one.page(challenge), 400, "cannot be used")
    check(time.monotonic() - start < 30, "the answer is remembered")


@test("hostile: whoever reaches the socket past nginx has not its secret (H-64)")
def _():
    site = _site()
    answer = fcgi.request(f"{site.folder}/run/oauth.sock", {"REQUEST_METHOD": "GET", "REQUEST_URI": "/oauth/jwks.json"})
    equal(answer[0], 403, f"the answer {answer}")


@test("hostile: no secret, code or token is in a log")
def _():
    one = client()
    code, verifier = one.code()
    got = one.redeem(code, verifier).json()
    one.refresh(got["refresh_token"])
    with open(f"{one.site.folder}/log/access.log", encoding="utf-8") as file:
        logs = one.site.log() + file.read()
    for secret in (code, verifier, got["access_token"], got["refresh_token"], PASSPHRASE, hashlib.sha256(code.encode()).hexdigest()[:32]):
        check(secret not in logs, f"{secret[:12]}… is in a log")
    contains(logs, "oauth-allow", "the audit line")


@test("hostile: whoever guesses the passphrase waits, longer each time, and a right one in the meantime does not help", timeout=180)
def _():
    one = own_client()
    page, tries = one.page(pkce()[1]), 0
    while page.status != 429:
        page, began, tries = one.answer(page, passphrase="wrong, wrong, wrong"), time.monotonic(), tries + 1
        if page.status != 429:
            shown(page, 403, "The passphrase is wrong")
        check(tries < 12, "no wait, although each is twice the one before")
    shown(page, 429, "too many wrong passphrases")
    check(tries > 4, f"after {tries} tries")
    waits = int(page.headers["Retry-After"])
    check(1 <= waits <= 1 << (tries - 4), f"waits {waits} s")
    right = one.answer(page)
    if time.monotonic() - began < waits:
        shown(right, 429, "too many wrong passphrases")
    with open(f"{one.site.root}/.oauth/state.json", encoding="utf-8") as file:
        attempts = json.load(file)["attempts"]
    check(any(entry["n"] >= 4 for entry in attempts.values()), f"the tries are noted: {attempts}")
    made = subprocess.run([one.site.binary, "oauth", "code", "--config", one.site.config], text=True, check=False, capture_output=True,
                          env=one.site.tool_environment())
    equal((made.returncode, re.sub("[0-9a-f]{24}", "", made.stdout)), (0, "once-\n"), f"sandcgi oauth code: {made.stderr}")
    code = made.stdout.strip()
    contains(one.answer(one.page(pkce()[1]), passphrase=code).result(), "code", "H-74: an administrator's code, however many were wrong")
    shown(one.answer(one.page(pkce()[1]), passphrase=code), 403, "The code was used")
    time.sleep(waits + 1)
    contains(one.answer(page).result(), "code", "the right one, after the wait")
    log = one.site.log()
    contains(log, "oauth-wrong-passphrase", "the log")
    check("wrong, wrong" not in log and PASSPHRASE not in log and code not in log, "no passphrase and no code is logged")

"""/mcp and /healthz: tokens, parameters, errors, limits, streams."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

from front import SECRET, Site
from front import token as link_token

KNOWN = {"REQUEST_METHOD", "CONTENT_TYPE", "CONTENT_LENGTH", "REQUEST_URI", "SERVER_PROTOCOL", "HTTPS", "REMOTE_ADDR",
         "HTTP_HOST", "HTTP_ORIGIN", "HTTP_ACCEPT", "HTTP_MCP_PROTOCOL_VERSION", "HTTP_MCP_METHOD", "HTTP_MCP_NAME",
         "HTTP_MCP_SESSION_ID", "HTTP_LAST_EVENT_ID", "SANDCGI_TENANT", "SANDCGI_SCOPES", "SANDCGI_PLACE", "SANDCGI_CALLS", "SANDCGI_SECRET"}


def started(**settings):
    site = Site(**settings)
    site.start()
    return site


def params_of(answer):
    return json.loads(answer.body)["params"]


def is_rpc_error(answer):
    body = json.loads(answer.body)
    return answer.header("content-type") == "application/json" and set(body) == {"jsonrpc", "error"} and \
        set(body["error"]) == {"code", "message"}


def scopes_and_tenant(site, header, path="/mcp", method="POST", more=()):
    """(tenant, scopes) that a worker or the hub is told, or the status."""
    answer = site.request(method, path, b"{}", [*([("Authorization", header)] if header else []), *more])
    if answer.status != 200:
        return answer.status
    values = dict(params_of(answer))
    return values["SANDCGI_TENANT"], values.get("SANDCGI_SCOPES")


def tokens(checks):
    site = started()
    try:
        token = site.token
        other = site.add_token("other")
        second = site.add_token("default")
        odd = "Aa.b+c/d~e_f-0123456789=="
        checks.equal("add --token-stdin takes a token of one's own",
                     site.token_command("add", "--tenant", "odd", "--token-stdin", stdin=odd + "\n").returncode, 0)
        for bad in ("short", "with blank in it 0123456789", "", 'x"; evil 0123456789', "x" * 600, "scg_" + "x" * 30):
            checks.equal(f"add --token-stdin refuses {bad[:30]!r}", site.token_command("add", "--token-stdin", stdin=bad).returncode, 1)
        for bad in ("", ".x", "a b", 'a"b', "x" * 65, "../x"):
            checks.equal(f"add refuses the tenant {bad[:12]!r}", site.token_command("add", "--tenant", bad).returncode, 2)
        with open(site.path("conf/tokens.map"), "a", encoding="ascii") as out:  # as nginx/token.sh wrote them
            out.write(f'"~^(?i:bearer) +{"0123abcd" * 8}$" "old"; # 0123456789ab\n')
        site.reload()

        def tenant(header):
            found = scopes_and_tenant(site, header)
            return found if isinstance(found, int) else found[0]

        checks.equal("the token opens its tenant", tenant(f"Bearer {token}"), "default")
        checks.equal("another tenant's token opens that one", tenant(f"Bearer {other}"), "other")
        checks.equal("a tenant may have two tokens", tenant(f"Bearer {second}"), "default")
        checks.equal("a token with special characters", tenant(f"Bearer {odd}"), "odd")
        checks.equal("a token of an earlier version", tenant("Bearer " + "0123abcd" * 8), "old")
        for scheme in ("bearer", "BEARER", "bEaReR"):
            checks.equal(f"the scheme's case does not matter: {scheme}", tenant(f"{scheme} {token}"), "default")
        checks.equal("several blanks after the scheme", tenant(f"Bearer   {token}"), "default")
        elsewhere = site.token_command("add", "--file", site.path("conf/elsewhere.map")).stdout.strip()
        signed = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJzYW5kY2dpIiwic3ViIjoiZGVmYXVsdCJ9."  # alg none, aud sandcgi, sub default
        start, key, secret = token.split("_", 2)
        their_key, their_secret = other.split("_", 2)[1:]
        with open(site.path("conf/tokens.map"), encoding="ascii") as file:
            hashed = re.search(rf'"{key}" "([\w-]{{22}})', file.read())[1]
        for name, header in (("another server's token for the same tenant (H-62)", f"Bearer {elsewhere}"), ("a claim (H-62)", f"Bearer {signed}"),
                             ("no token", None), ("capitals", f"Bearer {token.upper()}"), ("one character less", f"Bearer {token[:-1]}"),
                             ("one character more", f"Bearer {token}0"), ("without scheme", token), ("Basic", f"Basic {token}"),
                             ("empty", "Bearer "), ("two in a row", f"Bearer {token} {token}"), ("a comma", f"Bearer {token},"),
                             ("dot is not any character", "Bearer " + odd.replace(".", "x")), ("the tenant", "Bearer default"),
                             ("odd in another case", "Bearer " + odd.swapcase()), ("the secret in another case", f"Bearer scg_{key}_{secret.swapcase()}"),
                             ("the id in capitals", f"Bearer {start}_{key.upper()}_{secret}"), ("a known id with another's secret", f"Bearer scg_{key}_{their_secret}"),
                             ("another's id", f"Bearer scg_{their_key}_{secret}"), ("an id alone", f"Bearer {key}"), ("an id without scheme", key),
                             ("an id that is not there", f"Bearer scg_aaaaaaaa_{secret}"), ("no secret", f"Bearer scg_{key}_"),
                             ("the hash for the secret", f"Bearer scg_{key}_{hashed}"), ("the row's value", f"Bearer {hashed} default run,files,network"),
                             ("a percent sign in it", f"Bearer scg_{key}_%{secret[1:]}"), ("an escaped character", f"Bearer scg_{key}_%{ord(secret[0]):02X}{secret[1:]}"),
                             ("a wrong last character", f"Bearer {token[:-1]}{'A' if token[-1] != 'A' else 'B'}")):
            checks.equal(f"refused: {name}", tenant(header), 401)
        twice = site.request("POST", "/mcp", b"{}", [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {other}")])
        checks.check("two headers are refused", twice.status in (400, 401), twice.status)
        folder = "a" * 64
        os.mkdir(site.path(f"sandboxes/{folder}"))
        with open(site.path(f"sandboxes/{folder}/x.txt"), "w", encoding="ascii") as out:
            out.write("x")
        site.request("GET", f"/files/{folder}/{link_token(folder)}/x.txt", b"", [("Authorization", f"Bearer scg_{key}_{their_secret}")])
        line = site.log("access.log", "/files/aaaaaaaa").splitlines()[-1]
        checks.check("below /files/ a token names nobody", "/files/aaaaaaaa.../x.txt" in line and line.split()[2] == '""', line)

        with open(site.path("conf/tokens.map"), encoding="ascii") as file:
            held = file.read()
        checks.check("the file has no made token, nor its secret", secret not in held and their_secret not in held and odd.replace(".", "\\.")[:5] in held)
        listed = site.token_command("list")
        checks.check("list names tenants, not tokens", "other" in listed.stdout and secret not in listed.stdout and odd not in listed.stdout, listed)
        done = site.token_command("revoke", key)
        checks.check("revoke says where", "conf/tokens.map" in done.stderr and key in done.stderr, done)
        site.token_command("revoke", "--tenant", "other")
        site.reload()
        checks.equal("one of two tokens is taken away by its id", (tenant(f"Bearer {token}"), tenant(f"Bearer {second}")), (401, "default"))
        checks.equal("all tokens of a tenant are taken away", tenant(f"Bearer {other}"), 401)
        checks.equal("revoking what is not there fails", site.token_command("revoke", "--tenant", "other").returncode, 1)
        lost = site.token_command("add", "--tenant", "late", options=("--reload", "false"))
        checks.check("a token is shown although nginx cannot be told, and that is said", lost.returncode == 3 and len(lost.stdout.strip()) == 56
                     and "nginx could not be told" in lost.stderr and " late " in site.token_command("list").stdout, lost)
        site.reload()
        checks.equal("and counts from the next reload", tenant(f"Bearer {lost.stdout.strip()}"), "late")
        site.token_command("revoke", "--tenant", "late")
        both = [threading.Thread(target=site.add_token, args=(f"t{n}",)) for n in range(8)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        checks.equal("eight additions at once are all kept", len(json.loads(site.token_command("list", "--json").stdout)), 11)
    finally:
        site.stop()


def scopes_and_expiry(checks):
    site = started(RATE="1", BURST="20")
    try:
        narrow = site.add_token("alice", "--scope", "files,run")
        old = site.add_token("bob", "--expires", "1h")
        with open(site.path("conf/tokens.map"), encoding="ascii") as file:
            text = file.read()
        with open(site.path("conf/tokens.map"), "w", encoding="ascii") as out:  # the hour has passed
            out.write(re.sub(r",(\d{10}) bob ", lambda found: f",{int(found[1]) - 3700} bob ", text))
        soon = site.add_token("carol", "--expires", "30d")
        own = "0123456789abcdefghijklmnopqrstuv"
        site.token_command("add", "--tenant", "dave", "--scope", "run", "--token-stdin", stdin=own)
        site.reload()
        evil = [("Sandcgi-Scopes", "run"), ("SANDCGI-SCOPES", "run"), ("Sandcgi_Scopes", "run")]
        checks.equal("all scopes", scopes_and_tenant(site, f"Bearer {site.token}"), ("default", "run,files,network,admin"))
        checks.equal("some, whatever headers say", scopes_and_tenant(site, f"Bearer {narrow}", more=evil), ("alice", "run,files"))
        checks.equal("at another location", scopes_and_tenant(site, f"Bearer {narrow}", "/mcp/all"), ("alice", "run,files"))
        checks.equal("at the hub", scopes_and_tenant(site, f"Bearer {narrow}", "/mcp", "GET"), ("alice", "run,files"))
        checks.equal("of a token of one's own", scopes_and_tenant(site, f"Bearer {own}"), ("dave", "run"))
        checks.equal("not expired", scopes_and_tenant(site, f"Bearer {soon}"), ("carol", "run,files,network,admin"))
        answer = site.call(token=old)
        checks.equal("expired: 401 says so", (answer.status, answer.header("www-authenticate")),
                     (401, 'Bearer realm="sandcgi", error="invalid_token", error_description="the token has expired"'))
        checks.check("in the body, too", is_rpc_error(answer) and "has expired" in answer.body.decode(), answer.body)
        answer = site.call(token=old[:-1] + ("A" if old[-1] != "A" else "B"))
        checks.check("a wrong secret is not told that", answer.status == 401 and "expired" not in answer.header("www-authenticate"), answer.headers)
        above = [scopes_and_tenant(site, f"Bearer {narrow}") for _ in range(30)]
        checks.equal("above the rate the tenant and its scopes stay", set(above), {("alice", "run,files")})
        checks.check("and the worker is told the rate", any(dict(r["params"]).get("SANDCGI_RATE") == "above" for r in site.responder.requests))
    finally:
        site.stop()


def reload_keeps_calls(checks):
    site = started()
    try:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(site.call(b'{"do":"wait"}')))
        thread.start()
        site.responder.await_requests(1)
        before = site.workers()
        done = site.token_command("add", "--tenant", "late", options=("--reload", f"kill -HUP {site.process.pid}"))
        late = done.stdout.strip()
        site.await_reload(before)
        checks.equal("a new token works after the command's reload", site.call(token=late).status, 200)
        site.responder.go.set()
        thread.join()
        checks.equal("a call that ran during the reload is answered", answers[0].status, 200)
    finally:
        site.stop()


def parameters(checks):
    site = started(ORIGINS="https://o.test")
    try:
        site.responder.requests.clear()
        plain = params_of(site.call(b"{}", [("Content-Type", "application/json"), ("Accept", "application/json")]))
        names = [name for name, _ in plain]
        checks.check("only known parameters", set(names) <= KNOWN, names)
        checks.equal("none twice", len(names), len(set(names)))
        checks.equal("keep_conn is off", site.responder.requests[0]["flags"], 0)
        values = dict(plain)
        wanted = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": "2", "REQUEST_URI": "/mcp",
                  "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost",
                  "HTTP_ACCEPT": "application/json", "SANDCGI_TENANT": "default", "SANDCGI_SCOPES": "run,files,network,admin", "SANDCGI_PLACE": "mcp", "SANDCGI_CALLS": "32",
                  "SANDCGI_SECRET": SECRET}
        checks.equal("their values", values, wanted)
        checks.equal("HTTPS is told", dict(params_of(site.call(tls=True))).get("HTTPS"), "on")

        headers = [("Content-Type", "text/x"), ("Origin", "https://o.test"), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "m"),
                   ("Mcp-Name", "n"), ("Mcp-Session-Id", "s"), ("Last-Event-ID", "7"), ("Accept", "*/*"), ("Cookie", "c=1"),
                   ("Proxy", "http://evil.test"), ("X-Sandbox-Tenant", "evil"), ("X_Sandbox_Tenant", "evil"), ("SANDCGI_TENANT", "evil"),
                   ("Sandcgi-Tenant", "evil"), ("SANDCGI_SECRET", "evil"), ("Sandcgi-Secret", "evil"), ("Mcp_Name", "evil"),
                   ("Remote-Addr", "evil"), ("Request-Method", "evil"), ("Https", "evil"), ("User-Agent", "evil")]
        full = params_of(site.call(b"{}", headers))
        checks.equal("every parameter of the list but HTTPS", {name for name, _ in full}, KNOWN - {"HTTPS"})
        checks.check("no header slips in", not any("evil" in value or value == "c=1" for _, value in full), full)
        checks.check("the token itself does not reach the worker", not any(site.token in value for _, value in full))
        twice = params_of(site.call(b"{}", [("Mcp-Method", "tools/call"), ("Mcp-Method", "tools/list"), ("Sandcgi-Tenant", "a"),
                                            ("Sandcgi-Tenant", "b")]))
        checks.equal("a doubled header is one parameter", len([1 for name, _ in twice if name == "HTTP_MCP_METHOD"]), 1)
        checks.equal("and changes no tenant", [v for n, v in twice if n == "SANDCGI_TENANT"], ["default"])

        chunked = (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {site.token}\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n")
        checks.equal("a chunked body gets a length", dict(params_of(site.raw(chunked.encode()))).get("CONTENT_LENGTH"), "7")
        big = json.loads(site.call(b"x" * 3_000_000).body)
        checks.equal("a body that nginx spools to disk arrives whole", big["length"], 3_000_000)
        for method in ("DELETE", "PUT"):
            answer = site.request(method, "/mcp", token=site.token)
            checks.equal(f"{method} reaches the worker", dict(params_of(answer))["REQUEST_METHOD"], method)
            checks.equal(f"{method} without a token is 401", site.request(method, "/mcp").status, 401)
        checks.equal("the query string is passed on", dict(params_of(site.request("POST", "/mcp?x=1", token=site.token)))["REQUEST_URI"],
                     "/mcp?x=1")
    finally:
        site.stop()


def other_places(checks):
    site = started()
    try:
        answer = site.request("GET", "/healthz")
        values = dict(params_of(answer))
        checks.equal("/healthz asks a worker", (answer.status, values["REQUEST_URI"], values["SANDCGI_PLACE"], values["SANDCGI_SECRET"]),
                     (200, "/healthz", "health", SECRET))
        checks.equal("without a tenant", values["SANDCGI_TENANT"], "")
        checks.equal("POST /healthz is refused", site.request("POST", "/healthz").status, 405)
        asked = len(site.responder.requests)
        for path in ("/", "/.sandcgi/hub", "/.sandcgi/options", "/mcpx", "/MCP", "/.well-known/oauth-protected-resource", "/files", "/healthz/x", "/index.html"):
            checks.equal(f"{path} is 404", site.request("GET", path, token=site.token).status, 404)
        checks.equal("no worker was asked", len(site.responder.requests), asked)
        with site.connect(tls=True) as conn:
            checks.check("TLS 1.2 or 1.3", conn.version() in ("TLSv1.2", "TLSv1.3"), conn.version())
        if shutil.which("curl"):
            done = subprocess.run(["curl", "-sS", "--http2", "--cacert", site.path("tls/cert.pem"), "-H", f"Authorization: Bearer {site.token}",
                                   "-d", "{}", "-w", "\n%{http_version}", f"https://localhost:{site.https}/mcp"],
                                  check=False, capture_output=True, text=True)
            body, _, version = done.stdout.rpartition("\n")
            checks.equal("HTTP/2 over TLS", version, "2")
            checks.equal("HTTP/2's authority is HTTP_HOST", dict(json.loads(body)["params"])["HTTP_HOST"], f"localhost:{site.https}")
        else:
            checks.skip("HTTP/2 over TLS", "needs curl")
    finally:
        site.stop()


def own_errors(checks):
    site = started(BODY_MAX="64k")
    try:
        answer = site.request("POST", "/mcp", b"{}")
        checks.equal("401 without a token", (answer.status, answer.header("www-authenticate")), (401, 'Bearer realm="sandcgi"'))
        checks.check("its body is a JSON-RPC error without id", is_rpc_error(answer), answer.body)
        answer = site.call(token="f" * 64)
        checks.equal("401 for a wrong token says so", answer.header("www-authenticate"), 'Bearer realm="sandcgi", error="invalid_token"')

        asked = len(site.responder.requests)
        for name, token in (("with", site.token), ("without", None)):
            answer = site.request("POST", "/mcp", b"x" * 70000, token=token)
            checks.check(f"413 as JSON ({name} a token)", answer.status == 413 and is_rpc_error(answer), (answer.status, answer.body))
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {site.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = site.raw(head.encode() + b"11170\r\n" + b"x" * 70000 + b"\r\n0\r\n\r\n")
        checks.check("413 for a chunked body too", answer.status == 413 and is_rpc_error(answer), (answer.status, answer.body))
        huge = site.raw(head.replace("Transfer-Encoding: chunked", "Content-Length: 1000000000").encode())
        checks.equal("a body announced as 1 GB is refused at once", huge.status, 413)
        for args in ("token=abc", "a=1&access_token=abc", "api_key=x", "APIKEY=x", "key=x", "Authorization=x"):
            answer = site.request("POST", "/mcp?" + args, b"{}", token=site.token)
            checks.check(f"a secret in the URL is refused: {args}", answer.status == 400 and is_rpc_error(answer), answer.status)
        checks.equal("no worker saw any of these", len(site.responder.requests), asked)
        checks.equal("'keyboard=1' is not a secret", site.request("POST", "/mcp?keyboard=1", token=site.token).status, 200)

        answer = site.call(b'{"do":"status","status":"413 Content Too Large","body":"mine"}')
        checks.equal("a worker's error passes unchanged", (answer.status, answer.body), (413, b"mine"))
        answer = site.call(b'{"do":"redirect","to":"/healthz"}')
        checks.equal("a worker cannot redirect inside nginx", answer.body, b"{}")
        answer = site.call(b'{"do":"drop"}')
        checks.check("502 when a worker breaks off", answer.status == 502 and is_rpc_error(answer), (answer.status, answer.body))
        checks.check("it says when to try again", answer.header("retry-after") == "2", answer.headers)
        os.rename(site.path("run/front.sock"), site.path("run/away.sock"))
        answer = site.call()
        checks.check("502 without a listener", answer.status == 502 and is_rpc_error(answer), (answer.status, answer.body))
        os.rename(site.path("run/away.sock"), site.path("run/front.sock"))
        checks.equal("and 200 when the socket is back", site.call().status, 200)
        checks.check("the token is in no log", site.token not in site.log("access.log") + site.log("nginx-error.log"))
        checks.check("query strings are not in the access log", "abc" not in site.log("access.log") and "?" not in site.log("access.log"))
        checks.check("nor in nginx's error log", "abc" not in site.log("nginx-error.log"), site.log("nginx-error.log"))
    finally:
        site.stop()


def wait_in_call(site):
    """A call that ends when the test says so. nginx may still count one whose answer is here."""
    end = time.monotonic() + 20
    while site.call(b'{"do":"wait"}').status == 429 and time.monotonic() < end:
        time.sleep(0.05)


def limits(checks):
    site = Site(RATE="1", BURST="3")
    path = site.path("conf/http.conf")  # per minute, not per second: the calls may take their time
    with open(path, encoding="utf-8") as conf:
        text = conf.read()
    checks.check("the rate is there", ":1m rate=1r/s;" in text)
    with open(path, "w", encoding="utf-8") as conf:
        conf.write(text.replace(":1m rate=1r/s;", ":1m rate=1r/m;"))
    site.start()
    try:
        told = [dict(params_of(site.call())).get("SANDCGI_RATE", "") for _ in range(6)]
        checks.equal("a worker is told of calls above the rate", told, [""] * 4 + ["above"] * 2)
        before = len(site.responder.requests)
        slow = [threading.Thread(target=wait_in_call, args=(site,)) for _ in range(4)]
        for thread in slow:
            thread.start()
        site.responder.await_requests(before + len(slow))
        answer = site.call()
        checks.check("of these, four at once; more are 429 as JSON", answer.status == 429 and is_rpc_error(answer), (answer.status, answer.body))
        checks.equal("with Retry-After", answer.header("retry-after"), "1")
        other = site.add_token("other")
        site.reload()
        checks.equal("another tenant is not touched", site.call(token=other).status, 200)
        checks.equal("nor is a caller without a token", site.request("POST", "/mcp").status, 401)
        site.responder.go.set()
        for thread in slow:
            thread.join()
    finally:
        site.stop()
    site = started(CONNS="2")
    try:
        checks.equal("a worker is told the number of calls at once", dict(params_of(site.call())).get("SANDCGI_CALLS"), "2")
        before = len(site.responder.requests)
        slow = [threading.Thread(target=wait_in_call, args=(site,)) for _ in range(2 + 16)]
        for thread in slow:
            thread.start()
        site.responder.await_requests(before + len(slow))
        answer = site.call()
        checks.check("those above it and 16 more are 429", answer.status == 429 and is_rpc_error(answer), (answer.status, answer.body))
        site.responder.go.set()
        for thread in slow:
            thread.join()
        checks.equal("and pass when the others have ended", site.call().status, 200)
    finally:
        site.stop()


def begin_call(site, body):
    conn = site.connect()
    conn.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return conn


def streams(checks):
    site = started()
    try:
        conn = begin_call(site, b'{"do":"stream","count":4,"gap":0.4}')
        began, seen = time.monotonic(), {}
        data = b""
        while b"data: 3" not in data:
            data += conn.recv(4096)
            for number in range(4):
                if f"data: {number}".encode() in data:
                    seen.setdefault(number, time.monotonic() - began)
        conn.close()
        late = [seen[number] - 0.4 * number for number in range(4)]
        checks.check("each event arrives when it is written", min(late) < 0.3, late)  # all at the end would be 0.4 s late at least

        for name, finish in (("close", lambda c: c.close()),
                             ("reset", lambda c: (c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)), c.close()))):
            site.responder.closed.clear()
            conn = begin_call(site, b'{"do":"hang"}')
            time.sleep(0.3)
            early = list(site.responder.closed)
            left = time.monotonic()
            finish(conn)
            for _ in range(500):
                if site.responder.closed:
                    break
                time.sleep(0.02)
            took = site.responder.closed[0] - left if site.responder.closed else None
            checks.check(f"a client's {name} closes the worker's connection", not early and took is not None and took < 10, took)

        conn = begin_call(site, b'{"do":"stream","count":100,"gap":0.05}')
        conn.recv(100)
        conn.close()
        checks.equal("the server goes on after a stream was left", site.call().status, 200)
    finally:
        site.stop()


def origins(checks):
    site = started(ORIGINS="https://a.test,http://b.test:81", HOSTS="front.test one.test:99")
    try:
        port = site.http

        def status(host, origin=None, method="POST"):
            headers = [("Origin", origin)] if origin else []
            return site.request(method, "/mcp", b"{}", headers, token=site.token, host=host).status

        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", f"127.0.0.1:{port}", "[::1]:8", "front.test", "Front.Test:444", "one.test:99"):
            checks.equal(f"may be called as {host}", status(host), 200)
        for host in ("evil.test", "evil.test:80", "localhost.evil.test", "xlocalhost", "127.0.0.1.evil.test", "frontxtest", "one.test",
                     "one.test:98", "127.0.0.2"):
            checks.equal(f"may not be called as {host}", status(host), 403)
        for origin in ("https://a.test", "HTTPS://A.TEST", "http://b.test:81", "http://localhost", "https://localhost"):
            checks.equal(f"pages of {origin} may call", status("localhost", origin), 200)
        for origin in ("null", "https://b.test:81", "http://a.test", "https://a.test:444", "https://a.test.evil.test", "http://localhost:1",
                       "http://evil.test", "https://a.test/", "file://", "http://localhost http://localhost"):
            checks.equal(f"pages of {origin} may not", status("localhost", origin), 403)
        checks.equal("the page's host must be the one that is called", status("127.0.0.1:80", "http://localhost:80"), 403)
        answer = site.request("POST", "/mcp", b"{}", [("Origin", "http://evil.test")])
        checks.check("403 comes before 401, as a JSON-RPC error, and without CORS headers",
                     answer.status == 403 and is_rpc_error(answer) and "access-control-allow-origin" not in answer.headers, answer.headers)

        asked = len(site.responder.requests)
        answer = site.request("OPTIONS", "/mcp", headers=[("Origin", "https://a.test"), ("Access-Control-Request-Method", "POST")])
        checks.equal("a browser's question is answered without a token", (answer.status, answer.body), (204, b""))
        checks.equal("for its origin", (answer.header("access-control-allow-origin"), answer.header("vary")), ("https://a.test", "Origin"))
        allowed = answer.header("access-control-allow-headers").lower().split(", ")
        checks.check("with the headers that clients send", {"content-type", "accept", "authorization", "mcp-protocol-version", "mcp-session-id",
                                                           "last-event-id", "mcp-method", "mcp-name"} <= set(allowed), allowed)
        checks.equal("and the methods", answer.header("access-control-allow-methods"), "POST, GET, DELETE")
        checks.equal("not for others", site.request("OPTIONS", "/mcp", headers=[("Origin", "http://evil.test")]).status, 403)
        checks.equal("no worker was asked", len(site.responder.requests), asked)
        answer = site.request("POST", "/mcp", b"{}", [("Origin", "https://a.test")])
        checks.equal("nginx's own errors can be read by allowed pages", (answer.status, answer.header("access-control-allow-origin"),
                     answer.header("access-control-expose-headers")), (401, "https://a.test", "Mcp-Session-Id, WWW-Authenticate"))
        answer = site.call(headers=[("Origin", "https://a.test")])
        checks.check("what a worker answers is left to it", "access-control-allow-origin" not in answer.headers, answer.headers)
        checks.equal("HTTP/1.0 without Host", site.raw(f"POST /mcp HTTP/1.0\r\nAuthorization: Bearer {site.token}\r\n"
                                                       "Content-Length: 2\r\n\r\n{}".encode()).status, 200)
    finally:
        site.stop()
    site = started(HOSTS="*")
    try:
        checks.equal("HOSTS=* takes any name", site.request("POST", "/mcp", b"{}", token=site.token, host="any.test").status, 200)
        checks.equal("but no foreign page", site.request("POST", "/mcp", b"{}", [("Origin", "http://x.test")], token=site.token,
                                                         host="any.test").status, 403)
    finally:
        site.stop()


def param_headers(checks):
    site = started(PARAM_HEADERS="Region ZONE2")
    try:
        headers = [("Mcp-Param-Region", "=?base64?SGVsbG8=?="), ("mcp-param-zone2", "z"), ("Mcp-Param-Other", "no"), ("Mcp_Param_Region", "no")]
        params = {name: value for name, value in params_of(site.call(headers=headers)) if name.startswith("HTTP_MCP_PARAM")}
        checks.equal("Mcp-Param-* of the list reach the worker, and no others", params,
                     {"HTTP_MCP_PARAM_REGION": "=?base64?SGVsbG8=?=", "HTTP_MCP_PARAM_ZONE2": "z"})
        checks.check("absent ones are no parameters", not any(n.startswith("HTTP_MCP_PARAM") for n, _ in params_of(site.call())))
        answer = site.request("OPTIONS", "/mcp", headers=[("Origin", "http://localhost")])
        checks.check("browsers may send them", answer.header("access-control-allow-headers").endswith(", Mcp-Name, Mcp-Param-Region, Mcp-Param-ZONE2"),
                     answer.headers)
        done = site.render_command(PARAM_HEADERS="a-b")
        checks.check("render.sh refuses names that a web server would confuse", done.returncode == 1 and "letters and digits" in done.stderr)
    finally:
        site.stop()


def places_of_tools(checks):
    site = started(PROFILES="session, runner runner")
    try:
        def tools(path, headers=(), method="POST"):
            answer = site.request(method, path, b"{}", headers, token=site.token)
            return dict(params_of(answer)).get("SANDCGI_TOOLS") if answer.status == 200 else answer.status

        evil = [("SANDCGI_TOOLS", "evil"), ("Sandcgi-Tools", "evil"), ("Sandcgi_Tools", "evil")]
        checks.equal("each place names its set, whatever the headers say",
                     [tools(path, evil) for path in ("/mcp", "/mcp/session", "/mcp/runner", "/mcp/session?tools=runner", "/mcp/all")],
                     [None, "session", "runner", "session", "all"])
        checks.equal("other names are no places", [tools(path) for path in ("/mcp/container", "/mcp/Session", "/mcp/container/")], [404] * 3)
        checks.equal("a slash at the end changes nothing", [tools(path) for path in ("/mcp/", "/mcp/?x=1", "/mcp/session/", "/mcp/all/")],
                     [None, None, "session", "all"])
        large = [site.request("POST", path, b" " * 2000000, token=site.token).status for path in ("/mcp/", "/mcp/runner/", "/mcp/api/", "/mcp/events")]
        checks.equal("nor how large a body may be", large, [200] * 4)
        answers = [site.request("POST", path, b" " * 17000000, token=site.token) for path in ("/mcp/", "/mcp/events")]
        checks.check("413 as JSON there, too", all(one.status == 413 and is_rpc_error(one) for one in answers), [one.body for one in answers])
        checks.equal("nor does it open a place without a token", [site.request("POST", path, b"{}").status for path in ("/mcp/", "/mcp/runner/")], [401] * 2)
        site.request("GET", "/mcp/events", token=site.token)
        checks.equal("the first server's address of the stream is that of its set", dict(site.hub.requests[-1]["params"])["SANDCGI_TOOLS"], "runner")
        checks.equal("with a token only", site.request("GET", "/mcp/events").status, 401)
        def answers(path):
            return dict(params_of(site.request("POST", path, b"{}", [("Sandcgi-Answers", "evil")], token=site.token))).get("SANDCGI_ANSWERS")

        checks.equal("results are objects at one place", [answers(path) for path in ("/mcp", "/mcp/api", "/mcp/session")], [None, "structured", None])
        checks.equal("a token is needed there, too", site.request("POST", "/mcp/api", b"{}").status, 401)
        site.request("GET", "/mcp/api", token=site.token)
        checks.equal("the hub is told, too", dict(site.hub.requests[-1]["params"])["SANDCGI_ANSWERS"], "structured")
        site.request("GET", "/mcp/session", token=site.token)
        checks.equal("streams that wait go to the hub with the set of their place", dict(site.hub.requests[-1]["params"])["SANDCGI_TOOLS"], "session")
        site.request("GET", "/mcp", token=site.token)
        checks.check("and without where there is none", "SANDCGI_TOOLS" not in dict(site.hub.requests[-1]["params"]))
        checks.equal("no token, no answer", site.request("POST", "/mcp/session", b"{}").status, 401)
        checks.equal("browsers may ask", site.request("OPTIONS", "/mcp/runner", headers=[("Origin", "http://localhost")]).status, 204)
        done = site.render_command(PROFILES="api")
        checks.check("render.sh refuses the name of our own place", done.returncode == 1 and "/mcp/api" in done.stderr)
        done = site.render_command(PROFILES="a/b")
        checks.check("render.sh refuses what is no name", done.returncode == 1 and "PROFILES" in done.stderr)
    finally:
        site.stop()


def places_of_other_servers(checks):
    others = ("runner", "session", "container", "interpreter")
    for wanted, there in ({}, others), ({"PROFILES": "all files"}, (*others, "files")), ({"PROFILES": "none"}, ()), ({"PROFILES": "session"}, ("session",)):
        site = started(**wanted)
        try:
            found = [name for name in (*others, "files", "events") if site.request("POST", f"/mcp/{name}", b"{}", token=site.token).status == 200]
            checks.equal(f"places with {wanted}", found, [*there, *(["events"] if "runner" in there else [])])
            answer = site.request("POST", "/mcp/nonsense", b"{}", token=site.token)
            checks.equal("what is no place: 404 as JSON", (answer.status, json.loads(answer.body)["error"]["code"]), (404, -32600))
        finally:
            site.stop()


def toolsets_of_tenants(checks):
    for rows, want in (("", None), ("default=files+admin", "files,admin"), ("other=all, default=core", "core"), ("Default=all d.fault=all", None)):
        site = started(TOOLSETS=rows)
        try:
            found = [dict(params_of(site.request("POST", path, b"{}", [], token=site.token))).get("SANDCGI_TOOLS") for path in ("/mcp", "/mcp/all")]
            checks.equal(f"TOOLSETS={rows}: the tenant's row at /mcp, all at /mcp/all", found, [want, "all"])
            done = site.render_command(TOOLSETS="default=a/b")
            checks.check("render.sh refuses what is no set", done.returncode == 1 and "TOOLSETS" in done.stderr)
        finally:
            site.stop()


def networks_of_tenants(checks):
    for rows, want in (("", None), ("default=none", "none"), ("other=none, default=public", "public"), ("Default=none d.fault=none", None)):
        site = started(NETWORKS=rows)
        try:
            evil = [("SANDCGI_NETWORK", "lan"), ("Sandcgi-Network", "lan"), ("Sandcgi_Network", "lan")]
            checks.equal(f"NETWORKS={rows}: the tenant's row, whatever the headers say",
                         dict(params_of(site.call(headers=evil))).get("SANDCGI_NETWORK"), want)
            done = site.render_command(NETWORKS="default=all")
            checks.check("render.sh refuses what is no tier", done.returncode == 1 and "NETWORKS" in done.stderr)
        finally:
            site.stop()


def reuse_of_locations(checks):
    site = started(PROFILES="session runner", NEVER_REUSE="/mcp/runner, /mcp")
    try:
        def reuse(path):
            evil = [("SANDCGI_REUSE", "conversation"), ("Sandcgi-Reuse", "conversation"), ("Sandcgi_Reuse", "conversation")]
            return dict(params_of(site.request("POST", path, b"{}", evil, token=site.token))).get("SANDCGI_REUSE")
        checks.equal("locations of NEVER_REUSE say never, whatever the headers say",
                     [reuse(path) for path in ("/mcp", "/mcp/runner", "/mcp/runner?x=1", "/mcp/session")], ["never", "never", "never", None])
        done = site.render_command(NEVER_REUSE="runner")
        checks.check("render.sh refuses what is no location", done.returncode == 1 and "NEVER_REUSE" in done.stderr)
    finally:
        site.stop()


def waiting_streams(checks):
    site = started(CONNS="2", STREAMS="3")
    try:
        def ask(method, headers=(), body=b""):
            before = len(site.responder.requests), len(site.hub.requests)
            status = site.request(method, "/mcp", body, headers, token=site.token).status
            return status, len(site.responder.requests) - before[0], len(site.hub.requests) - before[1]

        listen = ("Mcp-Method", "subscriptions/listen")
        checks.equal("GET goes to the hub", ask("GET"), (200, 0, 1))
        checks.equal("subscriptions/listen goes to the hub", ask("POST", [listen], b"{}"), (200, 0, 1))
        checks.equal("blanks around it do not matter", ask("POST", [("mcp-method", " subscriptions/listen\t")], b"{}"), (200, 0, 1))
        for name, method, headers in (("another method", "POST", [("Mcp-Method", "tools/call")]), ("other case", "POST", [("Mcp-Method", "Subscriptions/listen")]),
                                      ("no Mcp-Method", "POST", []), ("DELETE", "DELETE", [listen])):
            checks.equal(f"to a worker: {name}", ask(method, headers, b"{}"), (200, 1, 0))
        checks.equal("GET without a token is 401", site.request("GET", "/mcp").status, 401)
        values = dict(site.hub.requests[0]["params"])
        checks.equal("the hub sees who asks, and where", (values["SANDCGI_TENANT"], values["SANDCGI_SECRET"], values["REQUEST_URI"]),
                     ("default", SECRET, "/mcp"))
        checks.equal("with no more parameters than a worker", set(values) - KNOWN, set())
        site.request("GET", "/mcp/api?abc=1", b"", [], token=site.token)
        site.request("OPTIONS", "/mcp", b"", [])
        wanted = ('"GET /mcp HTTP', '"POST /mcp HTTP', '"GET /mcp/api HTTP', '"OPTIONS /mcp HTTP')
        log = site.log("access.log", *wanted)
        checks.check("the log has the path that a client called, without its query", all(one in log for one in wanted) and ".sandcgi" not in log and "abc" not in log, log)
        answer = site.request("POST", "/mcp", b"x" * 300000, [listen], token=site.token)
        checks.check("a list of subscriptions is small", answer.status == 413 and is_rpc_error(answer), answer.status)

        body = b'{"do":"stream","count":100,"gap":0.1}'
        open_ones = []
        for _ in range(3):
            conn = site.connect()
            conn.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token}\r\nMcp-Method: subscriptions/listen\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            open_ones.append(conn)
        first = [conn.recv(4096) for conn in open_ones]
        checks.check("three streams are open", all(b"200 OK" in data for data in first), first)
        answer = site.request("POST", "/mcp", b"{}", [listen], token=site.token)
        checks.check("streams over the number are 429", answer.status == 429 and is_rpc_error(answer), (answer.status, answer.body))
        checks.equal("streams do not count among the calls", site.call().status, 200)
        for conn in open_ones:
            conn.close()
    finally:
        site.stop()
    site = started(HUB="")
    try:
        checks.equal("without a hub a worker is asked", (site.request("GET", "/mcp", token=site.token).status, len(site.responder.requests)), (200, 1))
    finally:
        site.stop()


GROUPS = [tokens, scopes_and_expiry, reload_keeps_calls, parameters, other_places, origins, param_headers, places_of_tools, places_of_other_servers, toolsets_of_tenants,
          networks_of_tenants, reuse_of_locations, own_errors, limits, streams, waiting_streams]

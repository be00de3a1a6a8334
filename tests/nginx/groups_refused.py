"""Each refusal of nginx's is in its log with the reason, in each way to render the site, and no key is in any log."""
import configparser
import os
import re
import subprocess
import time

from fake_fcgi import Responder
from front import BINARY, NGINX_DIR, Site, free_port, token

FOLDER = "0123456789abcdef" * 4
WRONG = "scg_abcdefgh_" + "Wrong" * 8 + "xyz"
UPLOAD = "fedcba9876543210" * 2
SECRETS = (WRONG[13:], token(FOLDER)[:12], FOLDER[9:], UPLOAD[9:], "topsecret")
JWT = ".".join(["eyJhbGciOiJub25lIn0Wrong"] * 3)
FAULT = "the signature of the token is not valid"
LINK = f"/files/{FOLDER}/{token(FOLDER)}"
REFUSED = {"do": "status", "status": "403 Forbidden", "body": ""}

# (what, method, path below PREFIX, status, reason, more of Site.request()). MCP: of each rendering; NODE: not of an edge.
MCP = (
    ("a call without a token", "POST", "/mcp", 401, "no token", {}),
    ("a wrong token", "POST", "/mcp", 401, "wrong token", {"token": WRONG}),
    ("a wrong token at another place", "POST", "/mcp/all", 401, "wrong token", {"token": WRONG}),
    ("another host", "POST", "/mcp", 403, "host not allowed", {"host": "evil.test"}),
    ("another origin", "POST", "/mcp", 403, "origin not allowed", {"headers": [("Origin", "https://evil.test")]}),
    ("a token in the URL", "POST", "/mcp?a=1&token=topsecret", 400, "token in the URL", {}),
    ("a token in the URL, with a body that is too large", "POST", "/mcp?token=topsecret", 400, "token in the URL", {"body": b"x" * 70000}),
    ("a token in the URL of no place", "POST", "/mcp/nonsense/?key=topsecret", 400, "token in the URL", {}),
    ("a body that is too large", "POST", "/mcp", 413, "the body is too large", {"body": b"x" * 70000}),
    ("no such place", "GET", "/mcp/no/such/place", 404, "no such place", {}),
    ("another method for the health", "POST", "/healthz", 405, "method not allowed", {}))
NODE = (
    ("a link with another token", "GET", f"/files/{FOLDER}/{token('f' * 64)}/a.txt", 404, "no such link or file", {}),
    ("a link with more behind it", "GET", f"{LINK}/a.txtnope", 404, "no such link or file", {}),
    ("a link with its key in the query", "GET", f"{LINK}/none?sig=topsecret", 404, "no such link or file", {}),
    ("a link by another method", "POST", f"{LINK}/a.txt", 404, "no such link or file", {}),
    ("an upload by another method", "GET", f"/uploads/{UPLOAD}?sig=topsecret", 405, "method not allowed", {}),
    ("an archive by another method", "PUT", f"/archives/{FOLDER}/x.zip?sig=topsecret", 405, "method not allowed", {}),
    ("a call that the worker refuses", "POST", "/mcp", 403, "the server's answer", {"valid": True, "body": b'{"do":"status","status":"403 Forbidden","body":"no"}'}))
OAUTH = (
    ("the authorization server under another host", "GET", "/oauth/authorize?state=topsecret", 403, "host not allowed", {"host": "evil.test"}),
    ("a large form", "POST", "/oauth/token", 413, "the body is too large", {"body": b"x" * 40000}),
    ("an access token that is forged", "POST", "/mcp", 401, f"access token: {FAULT}", {"token": JWT}))
EDGE = (
    ("a link of no node", "GET", f"/zz{LINK}/a.txt", 404, "no such link or file", {}),
    ("a link of a node that is away", "GET", f"/n1{LINK}/a.txt", 502, "the server is not running or broke off", {}),
    ("an upload of a node that is away", "PUT", f"/n1/uploads/{UPLOAD}?sig=topsecret", 502, "the server is not running or broke off", {}),
    ("a call while all nodes are away", "POST", "/mcp", 502, "the server is not running or broke off", {"valid": True}))
BANNED = {"a wrong token", "a wrong token at another place", "a link with another token", "a link with more behind it", "a link with its key in the query", "a link by another method",
          "an access token that is forged", "a link of no node", "an upload that is refused"}

FOREIGN = """
{user}
pid "{root}/run/nginx.pid";
error_log "{root}/log/nginx-error.log" warn;
events {{ }}
http {{
    client_body_temp_path "{root}/tmp/body"; fastcgi_temp_path "{root}/tmp/fastcgi"; proxy_temp_path "{root}/tmp/proxy";
    scgi_temp_path "{root}/tmp/scgi"; uwsgi_temp_path "{root}/tmp/uwsgi";
    access_log "{root}/log/theirs.log";
    include "{root}/conf/http.conf";
    {edge}
    server {{
        listen 127.0.0.1:{port};
        include "{root}/conf/{site}.conf";
    }}
}}
"""


class Judge(Responder):
    """Refuses each access token."""

    def do_params(self, conn, order):
        self.reply(conn, "", "401 Unauthorized", extra=f"Sandcgi-Fault: {FAULT}\r\n")


def lines(site):
    return site.log("access.log").splitlines() if os.path.exists(site.path("log/access.log")) else []


def ask(site, method, path, more):
    """The status, and the line that the log has afterwards: it comes a moment later."""
    more = dict(more)
    if more.pop("valid", False):
        more["token"] = site.token
    before = len(lines(site))
    status = site.request(method, path, **more).status
    ends = time.monotonic() + 30
    while len(lines(site)) == before and time.monotonic() < ends:
        time.sleep(0.02)
    return status, lines(site)[before:]


def banned(line):
    """The address that fail2ban takes from a line: it cuts out the date, then looks for the expression."""
    filter_ = configparser.ConfigParser()
    filter_.read(NGINX_DIR / "fail2ban.conf", encoding="utf-8")
    date = filter_["Definition"]["datepattern"]
    for of, by in (("%Y", r"\d{4}"), ("%m", r"\d\d"), ("%d", r"\d\d"), ("%H", r"\d\d"), ("%M", r"\d\d"), ("%S", r"\d\d"), ("%z", r"(?:Z|[+-]\d\d:?\d\d)")):
        date = date.replace(of, by)
    rest, cut = re.subn(date, "", line)
    found = re.search(filter_["Definition"]["failregex"].replace("<HOST>", r"(?P<host>\S+)"), rest)
    return found.group("host") if cut and found else None


def refusals(checks, how, site, rows, prefix=""):
    for what, method, path, status, reason, more in rows:
        got, new = ask(site, method, prefix + path, more)
        checks.equal(f"{how}: {what}", (got, [line.endswith(f'"{reason}"') and f'" {status} ' in line and " 127.0.0.1 " in line for line in new]), (status, [True]))
        checks.equal(f"{how}: {what}, to fail2ban", [banned(line) for line in new], ["127.0.0.1" if what in BANNED else None])


def no_secret(checks, how, site):
    for name in sorted(os.listdir(site.path("log"))):
        text = site.log(name)
        found = [one for one in (*SECRETS, site.token, JWT) if one in text]
        checks.check(f"{how}: no key, token or query in {name}", not found, (found, text))
    if os.path.exists(site.path("log/theirs.log")):
        checks.equal(f"{how}: nothing of it is in the log of the operator's site", site.log("theirs.log"), "")


def ready(site, foreign=None, edge=""):
    os.mkdir(site.path("sandboxes/" + FOLDER))
    os.chmod(site.path("sandboxes"), 0o711)
    with open(site.path(f"sandboxes/{FOLDER}/a.txt"), "w", encoding="ascii") as out:
        out.write("hello\n")
    if foreign:
        with open(site.path("conf/theirs.conf"), "w", encoding="ascii") as out:
            out.write(FOREIGN.format(root=site.root, port=site.http, site=foreign, edge=edge, user="user www-data;" if site.as_root else ""))
    site.start("theirs.conf" if foreign else "nginx.conf")


def of_a_node(checks, how, site, rows=(), prefix=""):
    refusals(checks, how, site, MCP + NODE + tuple(rows), prefix)
    site.responder.bodiless = REFUSED
    refusals(checks, how, site, [("an upload that is refused", "PUT", f"/uploads/{UPLOAD}?expires=1&sig=topsecret", 403, "no such link or file", {"body": b"x"})], prefix)
    site.responder.bodiless = {}
    os.rename(site.path("run/front.sock"), site.path("run/away.sock"))
    refusals(checks, how, site, [(what, method, path, status, "the server is not running or broke off", more) for what, method, path, status, more in (
        ("a call without the server", "POST", "/mcp", 502, {"valid": True}), ("the health without the server", "GET", "/healthz", 502, {}),
        ("an archive without the server", "GET", f"/archives/{FOLDER}/x.zip?sig=topsecret", 502, {}))], prefix)
    os.rename(site.path("run/away.sock"), site.path("run/front.sock"))
    many = [site.request("GET", prefix + "/healthz").status for _ in range(60)]
    checks.check(f"{how}: too many are refused, and logged", 429 in many and any(line.endswith('"too many at once"') for line in lines(site)), many)
    no_secret(checks, how, site)


def refused_in_a_site(checks):
    site = Site(BODY_MAX="64k")
    try:
        ready(site, "server")
        of_a_node(checks, "in an existing site", site)
    finally:
        site.stop()


def refused_below_a_path(checks):
    site = Site(BODY_MAX="64k", PREFIX="/sand", SIGNED_URLS="")
    try:
        ready(site, "server")
        of_a_node(checks, "below a path", site, prefix="/sand")
    finally:
        site.stop()


def refused_with_oauth(checks):
    site = Site()
    judge = Judge(site.path("run/judge.sock"), site.group)
    try:
        site.render(BODY_MAX="64k", JUDGE="unix:" + judge.path, OAUTH_BACKEND="unix:" + site.path("run/hub.sock"), PUBLIC_URL="https://localhost")
        ready(site, "server")
        of_a_node(checks, "with OAuth", site, OAUTH)
    finally:
        judge.close()
        site.stop()


def refused_by_the_own_nginx(checks):
    """As start.sh has it: requests that nginx itself cannot take are in that log, too."""
    site = Site(BODY_MAX="64k")
    try:
        ready(site)
        of_a_node(checks, "in start.sh's nginx", site)
        refusals(checks, "in start.sh's nginx", site, [("a place that is not ours", "GET", "/elsewhere?x=topsecret", 404, "no such place", {}),
                                                       ("TRACE of a link", "TRACE", f"{LINK}/a.txt", 405, "method not allowed", {})])
        no_secret(checks, "in start.sh's nginx, at last", site)
    finally:
        site.stop()


def refused_by_an_edge(checks):
    site = Site()
    try:
        with open(site.path("nodes"), "w", encoding="ascii") as out:
            out.write(f"n1 127.0.0.1:{free_port()}\n")
        subprocess.run([BINARY, "nodes", "--from", "file", "--file", out.name, "--render", site.path("conf/nodes.conf")], check=True, capture_output=True)
        with open(site.path("conf/edge-secret.conf"), "w", encoding="ascii") as out:
            out.write('set $sandcgi_edge_secret "topsecret";\n')
        site.render(BODY_MAX="64k", NODES_FILE=site.path("conf/nodes.conf"), EDGE_SECRET_CONF=site.path("conf/edge-secret.conf"))
        ready(site, "edge", f'include "{site.path("conf/edge_http.conf")}";')
        refusals(checks, "at an edge", site, MCP + EDGE)
        no_secret(checks, "at an edge", site)
    finally:
        site.stop()


GROUPS = [refused_in_a_site, refused_below_a_path, refused_with_oauth, refused_by_the_own_nginx, refused_by_an_edge]

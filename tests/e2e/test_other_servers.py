"""The configurations of nginx/other-servers.md, booted with Debian's Apache and lighttpd: everything a client does, and what hostile programs try (H-02, H-03, H-14)."""
import functools
import io
import os
import pwd
import re
import shutil
import signal
import subprocess
import tarfile
import time
import urllib.parse

import engine
import procs
import sites
from harness import TOP, Failed, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import Client, end_run
from streams import Stream

STREAM_S = 1.5  # between the first line and the last

APACHE = """
ServerRoot "{folder}/web"
ServerName localhost
PidFile apache.pid
Listen 127.0.0.1:{port}
TimeOut {patience}
TypesConfig /dev/null
ErrorLog {folder}/log/web.log
{modules}
DocumentRoot "{folder}/web/site"
<Directory "{folder}/web/site">
    AllowOverride {override}
    Require all granted
</Directory>
{more}
{page}
"""
APACHE_MODULES = "mpm_event authn_core authz_core alias env mime rewrite".split()

LIGHTTPD = """
server.document-root = "{folder}/web/site"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{folder}/log/web.log"
server.upload-dirs = ( "{folder}/tmp" )
{page}
"""


def _program(name):
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not path:
        raise Skip(f"{name} is not installed")
    return path


@functools.cache
def _blocks():
    with open(f"{TOP}/nginx/other-servers.md", encoding="utf-8") as file:
        return dict(re.findall(r"<!-- configuration: (\S+) -->\n```\w+\n(.*?)```", file.read(), re.S))


def _page(name, places):
    """A block of the page with the places of this test."""
    text = _blocks()[name]
    for example, place in places.items():
        if example in text:
            text = text.replace(example, place)
    check("/run/sandcgi" not in text and "/home/alice" not in text, f"an example's place is left in {name}")
    return text


def new_site(**settings):
    """For one of the functions that start a web server."""
    port = sites.free_port()
    site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None, "SANDCGI_HUB": None, "ANSWERS": "structured",
                      "PUBLIC_BASE_URL": f"http://localhost:{port}"} | settings, start=False, binary=shutil.copy(sites.BINARY, f"{new_folder('program')}/sandcgi"))
    site.port = port
    os.makedirs(f"{site.folder}/web/site")
    return site


def _apache(site, modules, page, patience, more="", override="None"):
    binary = _program("apache2")
    loaded = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in (*APACHE_MODULES, *modules))
    _start(site, APACHE.format(folder=site.folder, port=site.port, patience=patience, modules=loaded, page=page, more=more, override=override),
           binary, "-DFOREGROUND", "-f")


def _start(site, text, binary, *options):
    path = f"{site.folder}/web/server.conf"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    site.web_config = path
    if sites.IS_ROOT:
        subprocess.run(["chown", "-R", sites.web_account(), f"{site.folder}/web", f"{site.folder}/log", f"{site.folder}/tmp"], check=True)
    process = site.web = subprocess.Popen([*_as_web_account(site), *sites.DIE_WITH_US, binary, *options, path], stdin=subprocess.DEVNULL,  # pylint: disable=consider-using-with
                               env=sites.clean_environment() | sites.SANITIZER_ENV)
    at_test_end(procs.end, process)
    client = Client(f"http://localhost:{site.port}")

    def answers():
        check(process.poll() is None, f"{binary} ended with {process.returncode}")
        try:
            return client.http("GET", "/healthz").status == 200
        except OSError:
            return False
    try:
        wait_until(answers, 15, f"{binary} answers /healthz")
    except Failed as problem:
        with open(f"{site.folder}/log/web.log", encoding="utf-8", errors="replace") as file:
            raise Failed(f"{problem}; its log ends with: {file.read()[-1500:]}") from None


def _as_web_account(site):
    if not sites.IS_ROOT:
        return []
    account = pwd.getpwnam(sites.web_account())
    groups = [str(account.pw_gid)]
    if site.process is None and engine.host().startswith("unix://"):  # a CGI program talks to the engine itself
        groups.append(str(os.stat(engine.host().removeprefix("unix://")).st_gid))
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", f"--groups={','.join(groups)}"]


def start_apache_fastcgi(site, patience=60):
    """The server and Apache; patience: its TimeOut in seconds."""
    site.start_server()
    site.web_block = _page("apache-fastcgi", {"/run/sandcgi/fastcgi.sock": site.front})
    _apache(site, ("proxy", "proxy_fcgi"), site.web_block, patience)


CGI = {"SANDCGI_USER": None, "SANDCGI_LISTEN_GROUP": None}


def start_apache_cgi(site):
    """Apache alone, for a site with the settings CGI; the path of the program that it starts."""
    program = f"{site.folder}/web/sandcgi"
    os.symlink(site.binary, program)
    places = {"/home/alice/bin/sandcgi": program, "/home/alice/sandcgi/sandcgi.env": site.config}
    for name, block in (("sandcgi.cgi", "apache-cgi-script"), (".htaccess", "apache-cgi")):
        with open(f"{site.folder}/web/site/{name}", "w", encoding="utf-8") as file:
            file.write(_page(block, places))
    os.chmod(f"{site.folder}/web/site/sandcgi.cgi", 0o755)
    if sites.IS_ROOT:
        subprocess.run(["chown", "-R", sites.web_account(), site.root, site.config], check=True)
    os.chmod(site.config, 0o600)
    _apache(site, ("cgid",), "", patience=20, more=f'ScriptSock "{site.folder}/web/cgid.sock"', override="AuthConfig FileInfo Options")
    return program


def start_lighttpd(site):
    """The server and lighttpd."""
    site.start_server()
    site.web_block = _page("lighttpd", {"/run/sandcgi/fastcgi.sock": site.front})
    _start(site, LIGHTTPD.format(folder=site.folder, port=site.port, page=site.web_block), _program("lighttpd"), "-D", "-f")


def _target(url):
    parts = urllib.parse.urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


# ---- what every one of them must do ----

MADE = """printf 0123456789 >made.txt; printf '<script>' >page.html; ln -s made.txt link.txt; ln -s {config} config.txt; ln -s / root; ln -s ../.state state
mkfifo fifo; mkdir sub; printf x >'sub/a b%.csv'; printf 'Options +Indexes\\nRequire all granted\\n' >.htaccess; head -c 3000000 /dev/zero >big.bin
"""


def _downloads(client, files):
    url = _target(files["made.txt"])
    whole = client.http("GET", url)
    equal((whole.status, whole.body, whole.headers["Content-Type"]), (200, b"0123456789", "text/plain; charset=utf-8"))
    equal((whole.headers["Content-Disposition"], whole.headers["X-Content-Type-Options"]), ("inline", "nosniff"))
    for status, body, headers in ((206, b"234", {"Range": "bytes=2-4"}), (416, None, {"Range": "bytes=99-"}), (304, b"", {"If-None-Match": whole.headers["ETag"]}),
                                  (304, b"", {"If-Modified-Since": whole.headers["Last-Modified"]}), (206, b"89", {"Range": "bytes=-2", "If-Range": whole.headers["ETag"]}),
                                  (200, b"0123456789", {"Range": "bytes=2-4", "If-Range": '"x"'}), (412, None, {"If-Match": '"x"'})):
        answer = client.http("GET", url, headers=headers)
        equal((answer.status, body if body is None else answer.body), (status, body), headers)
    head = client.http("HEAD", url)
    equal((head.status, head.body), (200, b""))
    check(head.headers.get("Content-Length", "10") == "10", head.headers)  # mod_proxy_fcgi leaves it out
    equal(client.http("GET", _target(files["big.bin"])).body, bytes(3_000_000))
    equal(client.http("GET", _target(files["sub/a b%.csv"])).status, 200)
    page = client.http("GET", _target(files["page.html"]))
    equal((page.status, page.headers["Content-Disposition"]), (200, "attachment"))
    contains(page.headers["Content-Security-Policy"], "sandbox")
    check(client.http("POST", url, b"x").status in (404, 405), "a POST")


PLANTED = ("link.txt", "config.txt", "root/etc/passwd", "state/x", "fifo", "sub", "none")
ODD = ("", "sub/", "made.txt/", "made.txt/x", "../.state/x", "%2e%2e/.state/x", "..%2f.state", "sub//a", "made.txt%00", "%00")


def _attacks(client, site, base):
    """What the obvious Alias gave away. base: a URL's path in front of a file's name."""
    folder = re.search("[0-9a-f]{64}", base).group()
    for name in PLANTED:
        equal(client.http("GET", f"{base}/{name}").status, 403 if "SANDBOX_URL_TTL" in site.settings else 404, name)
    for path in (*(f"{base}/{name}" for name in ODD), f"/files/.state/{folder}.json", "/files/.tickets/", "/files/", f"/files/{folder}/", f"/files/{folder}/made.txt",
                 f"/files/{folder}/{'A' * 22}/made.txt", "/files/../web/", "/sandboxes/", f"/{folder}/made.txt"):
        answer = client.http("GET", path)
        check(answer.status in (400, 403, 404), f"{path}: {answer.status}")
        check(site.token.encode() not in answer.body and b"tenant" not in answer.body, f"{path} gave something away")


def _uploads_and_archives(client):
    link = client.structured("create_upload", {"conversationId": client.conversation, "filename": "up.bin"})
    equal(client.http("PUT", _target(link["url"]), b"u" * 300_000).status, 201)
    equal(client.http("PUT", _target(link["url"]), b"again").status, 410)
    archive = client.structured("download_archive", {"conversationId": client.conversation, "format": "tar.gz"})
    answer = client.fresh().http("GET", _target(archive["url"]))
    equal((answer.status, answer.headers["Content-Type"]), (200, "application/gzip"))
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as packed:
        check({"made.txt", "up.bin", "page.html"} <= {name.removeprefix("files/") for name in packed.getnames()}, packed.getnames())


def _streams(client):
    """Lines come as they are printed."""
    code = f"echo first; sleep {STREAM_S}; echo last"
    stream = Stream(client, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "run_code", "_meta": {"progressToken": "p"}, "arguments": {"conversationId": client.conversation, "language": "bash", "code": code}}}).begin()
    message, times = True, []
    while message:
        message = stream.next(15)
        times.append(time.monotonic())
        if message and message.get("id") == 7:
            equal(message["result"]["structuredContent"]["stdout"], "first\nlast\n")
            break
    check(len(times) > 1 and times[-1] - times[0] > STREAM_S / 2, f"the messages came at once: {times}")
    stream.close()


def _long_call(client):
    """The answer comes before the web server's patience ends; the run goes on, and another request brings the rest."""
    run = client.run("sleep 7; echo awake", "bash")
    equal(run["status"], "running")
    ended = wait_until(lambda: _ended(client, run["runId"]), 15, "the run's end")
    equal((ended["status"], ended["stdout"]), ("ok", "awake\n"))


def _ended(client, run):
    result = client.structured("get_run", {"runId": run, "waitMs": 1000})
    return result if result["status"] != "running" else None


def _places(client):
    def tools(path):
        answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, None, path)
        return {tool["name"] for tool in answer.json()["result"]["tools"]} if answer.status == 200 else answer.status
    for path, some in (("/mcp/", "run_code"), ("/mcp/api", "close_sandbox"), ("/mcp/all", "close_sandbox"), ("/mcp/session", "sandbox_run_python"),
                       ("/mcp/container/", "sandbox_exec"), ("/mcp/interpreter?x=1", "execute_code")):
        check(some in tools(path), f"{path}: {tools(path)}")
    equal(tools("/mcp/runner"), {"upload_file", "run_code", "list_runners"})
    equal(tools("/mcp/events"), {"upload_file", "run_code", "list_runners"})
    for path in ("/mcp/nothing", "/mcp/all/more", "/uploads", "/mcpx"):
        answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, None, path)
        equal(answer.status, 404, path)
        if path.startswith("/mcp/"):
            equal(answer.json()["error"]["code"], -32600, path)
    equal(client.with_token(None).post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, None, "/mcp/runner").status, 401)
    check(client.result("tools/list")["tools"], "/mcp")


def _journey(site):
    client = sites.new_conversation(Client(f"http://localhost:{site.port}", site.token))
    equal(client.with_token(None).request("tools/list").status, 401)
    equal(client.with_token("wrong" * 10).request("tools/list").status, 401)
    equal(client.http("GET", "/mcp", headers=client.headers()).status, 405)
    check({"run_code", "create_upload"} <= {tool["name"] for tool in client.result("tools/list")["tools"]}, "tools")
    _places(client)
    wait_until(lambda: client.http("GET", "/readyz").status == 200, 10, "/readyz")
    result = client.run(MADE.format(config=site.config), "bash")
    equal((result["status"], result["stderr"]), ("ok", ""))
    files = {file["name"]: file["url"] for file in result["files"]}
    _downloads(client, files)
    _attacks(client, site, _target(files["made.txt"]).split("?")[0].rsplit("/", 1)[0])
    _uploads_and_archives(client)
    _streams(client)
    return client


def _upgrade(site, client):
    """As the page has it: another program at the same place, with a program under way and calls meanwhile."""
    run = client.begin_run("sleep 3; echo over", "bash")
    wait_until(site.containers, 10, "a container")
    shutil.copy(site.binary, f"{site.binary}.new")
    os.rename(f"{site.binary}.new", site.binary)
    began = site.log().count("listening on")
    site.reload()
    while site.log().count("listening on") == began:
        equal(client.fresh().request("ping").status, 200)
    result, status = end_run(run, 20)
    equal((status, result["stdout"]), (200, "over\n"), "the program that was under way")
    equal(os.readlink(f"/proc/{site.process.pid}/exe"), site.binary)
    equal(client.run("cat made.txt", "bash")["stdout"], "0123456789", "after it")


def _remove(site, client):
    """As the page has it: the configuration goes, then the server."""
    with open(site.web_config, "r+", encoding="utf-8") as file:
        rest = file.read().replace(site.web_block, "")
        file.seek(0)
        file.truncate()
        file.write(rest)
    site.web.send_signal(signal.SIGUSR1)
    wait_until(lambda: client.fresh().http("GET", "/healthz").status == 404, 10, "the web server has no /healthz")
    site.process.terminate()
    equal(site.process.wait(60), 0, "exit status of the server")
    equal(client.fresh().http("POST", "/mcp", b"{}").status, 404)
    wait_until(lambda: not site.all_containers(), 10, "no container is left")


@test("Apache with mod_proxy_fcgi, as the page has it: tools, run, stream, upload, archive, downloads, planted links; upgrade, remove", timeout=90)
def _():
    site = new_site()
    start_apache_fastcgi(site, patience=2)
    client = _journey(site)
    equal(client.run("sleep 3; echo awake", "bash")["stdout"], "awake\n", "a call that is silent for longer than TimeOut")
    _upgrade(site, client)
    _remove(site, client)


@test("Apache with a CGI program and .htaccess, as on shared hosting, without a running server: the same, and long calls", timeout=120)
def _():
    site = new_site(**CGI, SANDBOX_WAIT="5s", SANDBOX_WAIT_MAX="5s")
    program = start_apache_cgi(site)
    client = _journey(site)
    _long_call(client)
    run = client.run("sleep 7; echo later", "bash")["runId"]
    with open(f"{program}.new", "w", encoding="ascii") as file:  # as the page has the upgrade
        file.write(f"#!/bin/sh\ntouch {site.folder}/tmp/upgraded\nexec {site.binary} \"$@\"\n")
    os.chmod(f"{program}.new", 0o755)
    os.rename(f"{program}.new", program)
    ended = wait_until(lambda: _ended(client, run), 15, "the end of a run that began before")
    equal(ended["stdout"], "later\n")
    check(os.path.exists(f"{site.folder}/tmp/upgraded"), "the new program is not used")
    wait_until(lambda: not site.containers(), 10, "no container is left")
    for name in (".htaccess", "sandcgi.cgi"):
        os.unlink(f"{site.folder}/web/site/{name}")
    equal(client.http("GET", "/healthz").status, 404, "removed")


@test("lighttpd with FastCGI and signed links: the same, with upgrade and removal", timeout=90)
def _():
    site = new_site(SANDBOX_URL_TTL="1h")
    start_lighttpd(site)
    client = _journey(site)
    _upgrade(site, client)
    _remove(site, client)

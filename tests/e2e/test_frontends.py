"""The same tools under other roofs: plain CGI, stdio, spawn-fcgi, systemd, another web server's tokens, TCP."""
import http.server
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading

import fcgi
import procs
import sites
from harness import TOP, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import Client
from stdio import Stdio
from streams import open_modern

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def _call(tool, arguments):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}).encode()


def _run_call(code="echo hi >made; cat made"):
    return _call("run_code", {"conversationId": "c" + secrets.token_hex(6), "language": "bash", "code": code})


def _environment(site):
    return sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS | {"SANDCGI_CONFIG": site.config}


# ---- CGI ----

class _CgiHandler(http.server.BaseHTTPRequestHandler):
    """As little of a web server as runs CGI programs."""
    program = environment = log_path = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = self.environment | {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": self.command, "SERVER_PROTOCOL": "HTTP/1.1",
                                  "REQUEST_URI": self.path, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                                  "CONTENT_LENGTH": str(len(body)), "REMOTE_ADDR": self.client_address[0]}
        for name, value in self.headers.items():
            env["HTTP_" + name.upper().replace("-", "_")] = value
        with open(self.log_path, "ab") as log:
            done = subprocess.run([self.program], input=body, env=env, stdout=subprocess.PIPE, stderr=log, check=False)
        status, headers, data = fcgi.parse_cgi(done.stdout)
        self.send_response(status)
        for name, value in headers.items():
            if name != "status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def _cgi_server(site):
    handler = type("Handler", (_CgiHandler,), {"program": site.binary, "environment": _environment(site),
                                               "log_path": site.log_path})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at_test_end(server.server_close)
    at_test_end(server.shutdown)
    client = Client(f"http://127.0.0.1:{server.server_port}", site.token)
    return sites.new_conversation(client)


@test("plain CGI under another web server, with no broker running: the same tools, nothing left behind", timeout=90, core=True)
def _():
    site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None}, start=False)
    client = _cgi_server(site)
    equal(client.result("ping"), {})
    client.upload("in.txt", b"uploaded")
    result = client.run("cat in.txt; echo x >out.txt", "bash")
    equal((result["status"], result["stdout"], [f["name"] for f in result["files"]]), ("ok", "uploaded", ["out.txt"]))
    equal(client.with_token("wrong").request("ping").status, 401)
    equal(client.http("GET", "/mcp", headers=client.headers()).status, 405)
    wait_until(lambda: not site.containers(), 5, "no container is left")
    wait_until(lambda: not _processes_with(site.config), 5, "no process is left")


def _until_let_go(process):
    """What it printed when nothing holds its standard output and its standard error any more, as a web server waits for it."""
    answer, waiting = b"", [process.stdout, process.stderr]
    while waiting:
        ready = select.select(waiting, [], [], 30)[0]
        check(ready, f"after {answer!r} the client waits for an end")
        for pipe in ready:
            data = os.read(pipe.fileno(), 65536)
            if not data:
                waiting.remove(pipe)
            elif pipe is process.stdout:
                answer += data
    return answer


@test("plain CGI: an answer, or a refusal, ends before the private broker does, which then leaves nothing in /tmp", timeout=90)
def _():
    with socket.socket(socket.AF_UNIX) as silent:  # an engine that takes connections and does not answer
        site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None}, start=False)
        path = f"{site.folder}/silent.sock"
        silent.bind(path)
        silent.listen(8)
        silent.settimeout(30)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        for token, status in ((site.token, 200), ("wrong" * 8, 401)):
            env = _environment(site) | {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "POST", "REQUEST_URI": "/mcp", "CONTENT_TYPE": "application/json",
                                        "CONTENT_LENGTH": str(len(body)), "HTTP_AUTHORIZATION": f"Bearer {token}", "DOCKER_HOST": f"unix://{path}"}
            process = subprocess.Popen([site.binary], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # pylint: disable=consider-using-with
            at_test_end(procs.end, process)
            held = silent.accept()[0]  # the broker's helper asks, and waits
            family = procs.descendants(process.pid)
            folders = {os.path.dirname(name) for pid in family for name in procs.unix_sockets(pid) if name.startswith("/tmp/sandcgi-")}
            equal(len(folders), 1, folders)
            procs.signal_all(family, signal.SIGSTOP)
            process.stdin.write(body)
            process.stdin.close()
            answer = _until_let_go(process)
            equal(fcgi.parse_cgi(answer)[0], status, answer)
            check(process.poll() is None and all(procs.exists(pid) for pid in family), "the broker has ended already")
            procs.signal_all(family, signal.SIGCONT)
            held.close()
            equal(process.wait(60), 0)
            wait_until(lambda: not _processes_with(site.config), 30, "no process is left")
            check(not os.path.exists(folders.pop()), "a folder is left in /tmp")


@test("plain CGI beside a running server uses its broker and its files")
def _():
    site = sites.own({"SANDCGI_AUTH": "token"}, start=False)
    site.start_server()
    wait_until(lambda: _listens(site.settings["SANDCGI_BROKER"]), 10, "the broker listens")
    client = _cgi_server(site)
    equal(client.run("echo cgi", "bash")["stdout"], "cgi\n")
    wait_until(lambda: "language=bash status=ok" in site.log(), 5, "the running broker did it")


def _listens(path):
    """A socket's file is there before it listens."""
    try:
        fcgi.connect(path).close()
        return True
    except OSError:
        return False


def _processes_with(word):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as command, open(f"/proc/{name}/environ", "rb") as env:
                    if b"sandcgi\0" in command.read() and word.encode() in env.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


# ---- stdio ----

def _asked(stdio, line):
    """The answer to a line."""
    stdio.send(line)
    while "method" in (answer := stdio.next()):
        pass
    return answer


def _talk(stdio):
    equal(stdio.initialize("2025-06-18")["protocolVersion"], "2025-06-18")
    stdio.call("ping", id_="after the notification")
    equal(stdio.answer("after the notification")["result"], {})
    names = {tool["name"] for tool in stdio.result("tools/list")["tools"]}
    check({"run_code", "copy_file"} <= names and "create_upload" not in names, f"tools of stdio: {names}")
    conversation = "c" + secrets.token_hex(6)
    for number in range(3):
        result = stdio.result("tools/call", {"name": "run_code", "arguments": {
            "conversationId": conversation, "language": "bash", "code": "echo x >>f; wc -l <f"}})
        equal(result["structuredContent"]["stdout"], f"{number + 1}\n")
    for line, code in ((b"{broken", -32700), (b"[]", -32600), (b'"x"', -32600), (b'{"jsonrpc":"2.0"}', -32600), (b"\xff", -32700),
                       (b'{"jsonrpc":"2.0","id":2,"method":"no/such"}', -32601),
                       (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"' + b"y" * (17 << 20) + b'"}}', -32700)):
        equal(_asked(stdio, line)["error"]["code"], code, repr(line[:30]))
    stdio.send(b"")
    equal(stdio.result("ping"), {})


@test("sandcgi stdio alone: a whole conversation, broken and endless lines, a clean end at EOF", timeout=90, core=True)
def _():
    site = sites.own(start=False)
    stdio = Stdio(site.config)
    _talk(stdio)
    helpers = procs.descendants(stdio.process.pid)
    check(helpers, "a private broker")
    stdio.process.stdin.close()
    equal(stdio.process.wait(60), 0, "exit status")
    while (message := stdio.next()) is not None:
        equal(message.get("method"), "notifications/tools/list_changed", "rest of the output")
    wait_until(lambda: not [pid for pid in helpers if procs.exists(pid)], 5, "its helpers have ended")
    equal(site.containers(), [])


@test("sandcgi stdio beside a running server uses its broker")
def _():
    site = sites.shared()
    stdio = Stdio(site.config)
    _talk(stdio)
    wait_until(lambda: not procs.descendants(stdio.process.pid), 5, "no broker of its own, and the calls' processes have ended")


@test("sandcgi stdio killed in mid-run takes the container with it")
def _():
    site = sites.own(start=False)
    stdio = Stdio(site.config)
    stdio.send(_run_call("sleep 60"))
    wait_until(site.containers, 15, "a container")
    stdio.process.kill()
    wait_until(lambda: not site.containers(), 10, "the container is gone")


# ---- sockets that are handed over ----

def _serves(site):
    site.start_nginx()
    site.wait_healthy()
    equal(sites.new_conversation(site.client()).run("echo here", "bash")["stdout"], "here\n")


@test("spawn-fcgi hands over the socket as descriptor 0, with and without the word serve")
def _():
    if not os.path.exists("/usr/bin/spawn-fcgi"):
        raise Skip("spawn-fcgi is not installed")
    for words in ((), ("serve",)):
        site = sites.own({"SANDCGI_LISTEN": "/nonexistent/ignored.sock"}, start=False)
        prefix = ["spawn-fcgi", "-n", "-s", site.front, "-M", "0666", "--"]
        log = open(site.log_path, "ab")  # pylint: disable=consider-using-with
        with log:
            site.process = subprocess.Popen([*prefix, site.binary, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=_environment(site))
        _serves(site)


LAUNCHER = """
import os, socket, sys
names = sys.argv[1].split(":")
for i, path in enumerate(sys.argv[2:2 + len(names)]):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, 0o666)
    s.listen(64)
    os.dup2(s.detach(), 3 + i)
    os.set_inheritable(3 + i, True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(names)), "LISTEN_FDNAMES": sys.argv[1]}
words = sys.argv[2 + len(names):]
os.execv(words[0], words)
"""


@test("systemd's socket activation: LISTEN_FDS is taken when LISTEN_PID is ours")
def _():
    site = sites.own({"SANDCGI_LISTEN": "/nonexistent/ignored.sock"}, start=False)
    site.start_server(prefix=[sys.executable, "-c", LAUNCHER, "unknown", site.front])
    _serves(site)


@test("systemd's socket activation: the hub's socket is taken by its name")
def _():
    site = sites.own({"SANDCGI_LISTEN": "/nonexistent/ignored.sock", "SANDCGI_HUB": "/nonexistent/hub.sock"}, start=False)
    site.start_server(prefix=[sys.executable, "-c", LAUNCHER, "hub:fastcgi", site.hub, site.front])
    _serves(site)
    stream = open_modern(site.client(), "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "L1").begin()
    stream.expect("notifications/subscriptions/acknowledged")


@test("LISTEN_FDS for another process is ignored")
def _():
    site = sites.own(start=False, environment={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
    site.start()
    equal(site.client().request("ping").status, 200)


@test("a stale socket is replaced, one in use is not taken away, a file in its place is not deleted")
def _():
    site = sites.shared()
    done = subprocess.run([site.binary, "serve", "--config", site.config], env=_environment(site), capture_output=True,
                          text=True, timeout=60, check=False)
    check(done.returncode != 0, "a second server on the same sockets")
    equal(site.client().request("ping").status, 200, "the first one")
    other = sites.own(start=False)
    with open(other.front, "w", encoding="ascii") as file:
        file.write("a file")
    other.start_server()
    check(other.process.wait(60) != 0, "it starts over a file")
    contains(other.log(), "SANDCGI_LISTEN")
    check(os.path.isfile(other.front), "the file is gone")


# ---- tokens checked by the workers, TCP ----

@test("SANDCGI_AUTH=token: workers check the token themselves; tenants come from the tokens file", timeout=60)
def _():
    site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None}, start=False)
    alice = secrets.token_hex(20)
    site.settings["SANDCGI_TOKENS_FILE"] = f"{site.folder}/tokens"
    with open(f"{site.folder}/tokens", "w", encoding="ascii") as file:
        file.write(f"alice {alice}\n")
    os.chmod(file.name, 0o600)
    site.write_config()
    site.start_server()
    wait_until(lambda: _listens(site.front), 10, "a worker listens")

    def ask(authorization, body=PING):
        params = {"HTTP_AUTHORIZATION": authorization} if authorization else {}
        return fcgi.request(site.front, params | {"SANDCGI_TENANT": "mallory", "SANDCGI_SECRET": site.secret}, body)
    for bad in (None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {site.token}", f"Bearer {site.token}x", site.token,
                f"Bearer {site.token[:-1]}", f"Bearer {site.token.upper()}"):
        status, headers, body = ask(bad)
        equal(status, 401, repr(bad))
        contains(headers["www-authenticate"], "Bearer")
        check("error" in json.loads(body), "a JSON body")
    urls = set()
    for good in (f"Bearer {site.token}", f"bearer {site.token}", f"Bearer {alice}"):
        status, _headers, body = ask(good, _call("upload_file", {"conversationId": "c", "filename": "f", "content": ""}))
        equal(status, 200, "a good token")
        urls.add(json.loads(body)["result"]["structuredContent"]["file"]["url"])
    equal(len(urls), 2, "two tenants")


@test("SANDCGI_AUTH=token: made tokens count and end without a reload, refuse no other call, and allow what their scopes say", timeout=90, core=True)
def _():
    site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None, "TOOLS": "all"}, start=False)
    site.settings["SANDCGI_TOKENS_FILE"] = path = f"{site.folder}/tokens"
    site.write_config()

    def token(*words):
        done = subprocess.run([site.binary, "token", *words, "--config", site.config], capture_output=True, text=True, check=False,
                              env=site.tool_environment())
        equal(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def ask(bearer, body=PING):
        return fcgi.request(site.front, {"HTTP_AUTHORIZATION": f"Bearer {bearer}"}, body)

    files = token("add", "--tenant", "alice", "--scope", "files")
    site.start_server()
    wait_until(lambda: _listens(site.front), 10, "a worker listens")
    statuses, ended = [], threading.Event()

    def call_on():
        while not ended.is_set():
            statuses.append(ask(site.token)[0])
    caller = threading.Thread(target=call_on)
    caller.start()
    run = token("add", "--tenant", "alice", "--scope", "run")
    wait_until(lambda: ask(run)[0] == 200, 2, "the new token counts")

    def call(bearer, method, params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return json.loads(ask(bearer, body)[2])
    names = {tool["name"] for tool in call(files, "tools/list", {})["result"]["tools"]}
    check({"read_file", "create_upload"} <= names and not names & {"run_code", "exec", "import_url"}, names)
    contains(call(files, "tools/call", {"name": "run_code", "arguments": {}})["error"]["message"], "needs the scope run")
    arguments = {"conversationId": "c", "language": "bash", "code": "echo here"}
    equal(call(run, "tools/call", {"name": "run_code", "arguments": arguments})["result"]["structuredContent"]["stdout"], "here\n")
    wanted = call(run, "tools/call", {"name": "run_code", "arguments": arguments | {"network": True}})
    check("error" in wanted or wanted["result"].get("isError"), wanted)
    token("revoke", run.split("_")[1])
    wait_until(lambda: ask(run)[0] == 401, 2, "the revoked one does not")
    with open(path, "a", encoding="ascii") as file:
        file.write("nonsense\n")
    wait_until(lambda: "the tokens stay as they were" in site.log(), 2, "a line about the wrong one")
    contains(site.log(), "line 3: must be a row")
    equal(ask(files)[0], 200, "the others stay")
    done = subprocess.run([site.binary, "check", "--config", site.config], capture_output=True, text=True, check=False, env=site.tool_environment())
    contains(done.stderr, f"{path}, line 3")
    ended.set()
    caller.join()
    equal(set(statuses), {200}, "of calls meanwhile")
    check(files.split("_", 2)[2] not in site.log(), "the secret is in the log")


@test("FastCGI over TCP refuses without the secret and serves with it (H-64)")
def _():
    port = sites.free_port()
    site = sites.own({"SANDCGI_LISTEN": f"127.0.0.1:{port}"}, start=False, nginx={"BACKEND": f"127.0.0.1:{port}"})
    site.start()
    equal(sites.new_conversation(site.client()).run("echo tcp", "bash")["stdout"], "tcp\n")
    equal(fcgi.request(("127.0.0.1", port), {"SANDCGI_TENANT": "default"}, PING)[0], 403)
    equal(fcgi.request(("127.0.0.1", port), {"SANDCGI_TENANT": "default", "SANDCGI_SECRET": site.secret}, PING)[0], 200)


@test("without a secret file, or with a secret that is too short, the server does not start (H-47, H-52)", core=True)
def _():
    for change in ({"SANDCGI_SECRET_FILE": None}, {"SANDCGI_SECRET_FILE": "/nonexistent/secret"}, {"FILE_SECRET": "short"},
                   {"FILE_SECRET": None}, {"MCP_API_TOKEN": "x"}, {"SANDBOX_ROOT": None}, {"SANDCGI_USER": "no-such-user"}):
        site = sites.own(change, start=False)
        site.start_server()
        check(site.process.wait(60) != 0, f"it starts with {change}")
        equal(len(site.log().strip().splitlines()), 1, f"lines for {change}: {site.log()}")
        if "SANDCGI_USER" not in change or os.geteuid() == 0:
            contains(site.log(), list(change)[0])


@test("a FastCGI client that sends nonsense, or nothing, or leaves half-way does no harm (H-43)", core=True)
def _():
    site = sites.shared()
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0", b"\xff" * 70000, b""):
        for _ in range(8):
            with fcgi.connect(site.front) as sock:
                try:
                    sock.sendall(data)
                except OSError:
                    pass
    equal(site.client().request("ping").status, 200)


@test("the plain commands: --version, a short --help, every setting with its meaning, settings, check, a typo, no settings file")
def _():
    def run(*arguments):
        done = subprocess.run([sites.BINARY, *arguments], env=sites.clean_environment() | sites.SANITIZER_ENV,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr
    check(run("--version")[1].startswith("sandcgi "), "--version")
    for name in ("SANDBOX_ROOT", "SANDCGI_WORKERS", "NGINX_RATE"):
        contains(run("help", "settings")[1], name)
        contains(run("settings")[1], name)
    check(len(run("--help")[1].splitlines()) <= 32, "--help is long")
    contains(run("serve", "--help")[1], "Usage: sandcgi serve")
    check(not re.search("index-proxy|file-key", run("--help")[1]), "an inner command is shown")
    status, _, err = run("status")
    equal((status, len(err.splitlines())), (1, 1))
    contains(err, "--config FILE")
    equal(run("srve")[0], 2)
    contains(run("srve")[2], "there is no command srve; there is serve; see sandcgi --help")
    site = sites.shared()
    equal(run("check", "--config", site.config)[:2], (0, f"ok: {site.config}\n"))
    status, out, _err = run("check", "--values", "--config", site.config)
    equal(status, 0)
    contains(out, f"SANDBOX_ROOT={site.root}")
    check(site.settings["FILE_SECRET"] not in out and site.token not in out, "a secret is printed")
    with open(f"{TOP}/fcgi/settings.md", encoding="utf-8") as file:
        contains(file.read(), "SANDBOX_MEMORY", "fcgi/settings.md's table of settings")


# ---- the tests' own ----

@test("tests/conformance/serve: the server outlives the script, and another clone's leaves it alone", timeout=120)
def _():
    clone = new_folder("clone")
    for part in ("nginx", "service", "tests/lib", "tests/e2e", "tests/conformance"):
        shutil.copytree(f"{TOP}/{part}", f"{clone}/{part}")
    environment = os.environ | {"SANDCGI_CONFORMANCE_BINARY": sites.BINARY, "XDG_RUNTIME_DIR": new_folder("notes")}

    def serve(top, *options):
        done = subprocess.run([f"{top}/tests/conformance/serve", *options], env=environment, capture_output=True, text=True, check=False)
        equal(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def answers(url, token):
        try:
            return Client(url.removesuffix("/mcp"), token).request("ping").status == 200
        except OSError:
            return False
    servers = []
    for top in (TOP, clone):
        at_test_end(serve, top, "--stop")
        servers.append(serve(top))
    check(all(answers(*one) for one in servers), "both answer")
    equal(serve(clone, "--stop"), ["stopped"])
    equal([answers(*one) for one in servers], [True, False])

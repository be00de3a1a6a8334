"""The audit log: each refused call, each run and each administrative act is one line, and no line has a secret."""
import contextlib
import functools
import json
import os
import re
import secrets
import signal
import socket
import subprocess

import fcgi
import procs
import sites
from harness import IS_ROOT, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from stdio import Stdio

SECRET = "hidden" + secrets.token_hex(8)  # in values of calls: no line may have it
TENANTS = "[often]\nruns_per_minute = 1\n[narrow]\nlanguages = bash\ntoolsets = files\n"


def _field(line, name):
    found = re.search(rf" {name}=(\S+)", line)
    return found.group(1) if found else None


def _fields(line, *names):
    return tuple(_field(line, name) for name in names)


class Door:
    """A server whose workers check tokens, and what it is asked, as a web server would."""

    def __init__(self):
        folder = new_folder("audit")
        with open(f"{folder}/tenants.ini", "w", encoding="ascii") as file:
            file.write(TENANTS)
        self.site = sites.Site({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None, "TOOLS": "all",
                                "SANDBOX_TENANTS_FILE": f"{folder}/tenants.ini"})
        self.site.settings["SANDCGI_TOKENS_FILE"] = f"{self.site.folder}/tokens"
        self.site.write_config()
        self.token = {"all": self._add("--tenant", "alice"), "files": self._add("--tenant", "alice", "--scope", "files"),
                      "often": self._add("--tenant", "often"), "narrow": self._add("--tenant", "narrow"), "wrong": "sandcgi_nothing_" + SECRET, None: None}
        self.site.start_server()
        wait_until(self.answers, 30, "it answers")

    def _add(self, *words):
        done = subprocess.run([self.site.binary, "token", "add", *words, "--config", self.site.config], capture_output=True, text=True, check=False,
                              env=self.site.tool_environment())
        equal(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def ask(self, body, token="all", **params):
        """(status, body)."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        bearer = self.token[token]
        head = {"REMOTE_ADDR": "192.0.2.7", "REQUEST_URI": "/mcp/api"} | ({"HTTP_AUTHORIZATION": f"Bearer {bearer}"} if bearer else {}) | params
        status, _headers, answer = fcgi.request(self.site.front, {name: value for name, value in head.items() if value}, body)
        return status, answer

    def answers(self):
        try:
            return self.ask(_message("ping"))[0] == 200 and b'"bash"' in self.ask(_tool("list_runners"))[1]
        except OSError:
            return False


@functools.cache
def _door():
    door = Door()
    sites.at_module_end(door.site.stop)
    return door


def _message(method, params=None, **members):
    return {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params else {}) | members


def _tool(name, **arguments):
    return _message("tools/call", {"name": name, "arguments": arguments})


CODE = {"language": "bash", "code": f"echo {SECRET}"}
PLACE = {"conversationId": SECRET}
# what is asked, by whom, with which parameters; the line's method, reason, tool and argument
REFUSALS = [
    (_message("ping"), None, {}, "-", "no_token", None, None),
    (_message("ping"), "wrong", {}, "-", "token", None, None),
    (_message("ping"), "all", {"HTTP_HOST": "evil.example"}, "-", "host", None, None),
    (_message("ping"), "all", {"HTTP_ORIGIN": "https://evil.example"}, "-", "origin", None, None),
    (_message("ping"), "all", {"REQUEST_METHOD": "PUT"}, "-", "method", None, None),
    (_message("ping"), "all", {"CONTENT_TYPE": "text/plain"}, "-", "content_type", None, None),
    (_message("ping"), "all", {"HTTP_ACCEPT": "image/png"}, "-", "accept", None, None),
    (_message("ping"), "all", {"REQUEST_URI": "/mcp/nonsense"}, "-", "unknown_place", None, None),
    (_message("ping"), "narrow", {"REQUEST_URI": "/mcp/runner"}, "-", "not_offered", None, None),
    (_message("ping"), "all", {"SANDCGI_RATE": "1"}, "-", "rate", None, None),
    (_message("ping"), "all", {"CONTENT_LENGTH": "9999999999"}, "-", "too_large", None, None),
    (b"{" + SECRET.encode(), "all", {}, "-", "not_json", None, None),
    ({"id": 1, "params": SECRET}, "all", {}, "-", "request", None, None),
    (_message(SECRET), "all", {}, "-", "unknown_method", None, None),
    (_message("tools/call", {"name": 7}), "all", {}, "tools/call", "params", None, None),
    (_tool(SECRET), "all", {}, "tools/call", "unknown_tool", None, None),
    (_tool("run_code", **CODE), "files", {}, "tools/call", "scope", "run_code", None),
    (_tool("exec", sandboxId="x", commands=["a"]), "narrow", {}, "tools/call", "not_offered", "exec", None),
    (_tool("run_code", **CODE | {"language": "cobol"}), "all", {}, "tools/call", "choice", "run_code", "language"),
    (_tool("run_code", **CODE | {"code": 7}), "all", {}, "tools/call", "type", "run_code", "code"),
    (_tool("run_code", language="bash"), "all", {}, "tools/call", "missing", "run_code", "code"),
    (_tool("run_code", language="bash", cod=SECRET), "all", {}, "tools/call", "unknown_argument", "run_code", "cod"),
    (_tool("get_run", runId=secrets.token_hex(12), sinceByte=-1), "all", {}, "tools/call", "range", "get_run", "sinceByte"),
    (_tool("run_code", **CODE | {"conversationId": SECRET * 100}), "all", {}, "tools/call", "too_long", "run_code", "conversationId"),
    (_tool("run_code", **CODE | {"language": "python"}), "narrow", {}, "tools/call", "denied", "run_code", None),
    (_tool("get_run", runId=secrets.token_hex(12)), "all", {}, "tools/call", "not_found", "get_run", None),
    (_tool("read_file", filename=SECRET, **PLACE), "all", {}, "tools/call", "not_found", "read_file", None),
    (_message("resources/read", {"uri": f"file:///{SECRET}"}), "all", {}, "resources/read", "not_found", None, None),
    (_message("prompts/get", {"name": SECRET}), "all", {}, "prompts/get", "params", None, None),
]


def _new_lines(log, before, word=" outcome="):
    return [line for line in log()[before:].splitlines() if word in line]


@test("each refused call is a line with the reason, the tool, the argument's name and the address, and no value", timeout=180, core=True)
def _():
    door, wrong = _door(), []
    for body, token, params, method, reason, tool, argument in REFUSALS:
        before, what = len(door.site.log()), f"{shorten_body(body)} as {token} {params}"
        door.ask(body, token, **params)
        wait_until(lambda start=before: _new_lines(door.site.log, start), 30, f"a line for {what}")
        line = _new_lines(door.site.log, before)[-1]
        tenant = None if reason in ("no_token", "token", "host", "origin") else {"all": "alice", "files": "alice"}.get(token, token)
        got = _fields(line, "outcome", "reason", "tool", "argument", "client", "tenant")
        if got != ("refused", reason, tool, argument, "192.0.2.7", tenant) or f": {method}" not in line:
            wrong.append((what, line))
    equal(wrong, [])
    check(SECRET not in door.site.log(), "a value is in the log")
    check(not any(token and token in door.site.log() for token in door.token.values()), "a token is in the log")


def shorten_body(body):
    return str(body)[:120]


@test("calls over a tenant's limit are refused with a line, and so is each message of a batch; a call that goes well has no reason", timeout=120)
def _():
    door = _door()
    before = len(door.site.log())
    for _ in range(3):
        door.ask(_tool("run_code", **CODE), "often")
    wait_until(lambda: [line for line in _new_lines(door.site.log, before) if _field(line, "reason") == "busy"], 30, "a line of the limit")
    line = [line for line in _new_lines(door.site.log, before) if _field(line, "reason") == "busy"][0]
    equal(_fields(line, "outcome", "tool", "tenant", "client"), ("refused", "run_code", "often", "192.0.2.7"), line)
    well = [line for line in _new_lines(door.site.log, before) if _field(line, "outcome") == "ok"]
    equal([_fields(line, "reason", "tool", "argument") for line in well], [(None, None, None)] * len(well))
    before = len(door.site.log())
    door.ask([_tool("run_code", **CODE | {"language": "cobol"}), _message("ping", id=2), _tool("nonsense")], HTTP_MCP_PROTOCOL_VERSION="2025-03-26")
    wait_until(lambda: len(_new_lines(door.site.log, before)) == 3, 30, "three lines")
    equal([_fields(line, "outcome", "reason", "tool", "tenant", "client") for line in _new_lines(door.site.log, before)],
          [("refused", "choice", "run_code", "alice", "192.0.2.7"), ("refused", "unknown_tool", None, "alice", "192.0.2.7"),
           ("ok", None, None, "alice", "192.0.2.7")])


@test("a client of stdio is refused with a line, too")
def _():
    folder = new_folder("stdio-audit")
    with open(f"{folder}/err", "wb") as out:
        client = Stdio(sites.own(start=False).config, stderr=out)
        for message in (_tool("run_code", **CODE | {"language": "cobol"}), _tool("nonsense")):
            client.send(message)
            check(client.next(), "an answer")

    def lines():
        with open(f"{folder}/err", encoding="utf-8") as file:
            return [line for line in file if " outcome=" in line]
    wait_until(lambda: len(lines()) == 2, 30, "two lines")
    equal(sorted(_fields(line, "outcome", "reason", "tool", "argument") for line in lines()),
          sorted([("refused", "choice", "run_code", "language"), ("refused", "unknown_tool", None, None)], key=str), lines())


# ---- runs ----

BUSY = "while :; do :; done"
LIMITED = {  # code, arguments, status
    "a time limit": (BUSY, {"timeoutMs": 2000}, "timeout"),
    "a limit of output": ("while :; do echo 0123456789012345678901234567890123456789; done", {"timeoutMs": 30000}, "output_limit"),
}


@test("the line of a run that a limit ended has what it used; a figure that is not known is -, never 0", timeout=180, core=True)
def _():
    site = sites.with_settings(SANDBOX_OUTPUT_MAX="1m")
    for what, (code, arguments, status) in LIMITED.items():
        client = sites.new_conversation(site.client())
        for _warm in range(2):  # a new container, and one that has served
            client.run("echo", "bash")
            before = len(site.log())
            result = client.run(code, "bash", **arguments)
            equal(result["status"], status, f"{what}: {result}")
            wait_until(lambda start=before: _new_lines(site.log, start, " audit=run "), 30, "its line")
            line = _new_lines(site.log, before, " audit=run ")[-1]
            equal(_fields(line, "status", "exit"), (status, "-"), line)
            check(int(_field(line, "cpu_ms")) > 10 and int(_field(line, "memory")) > 0, f"{what}: {line}")
            check(result["cpuMs"] > 10, result)
            check(int(_field(line, "cpu_ms")) < 10000, f"of others, too: {line}")
    check(not re.search(r" audit=run .* (cpu_ms|memory)=0 ", site.log()), "unknown is 0")


# ---- administrative acts ----

PASSPHRASE = "correct horse battery staple"


class Office:
    """Commands of an administrator, and where their lines go."""

    def __init__(self, site):
        self.site, self.folder = site, new_folder("office")

    def command(self, *words, said=None, before=()):
        done = subprocess.run([*before, self.site.binary, *words, "--config", self.site.config], input=said, capture_output=True, text=True, check=False,
                              env=self.site.tool_environment(), timeout=60)
        equal(done.returncode, 0, f"{words}: {done.stderr}")
        check("audit=" not in done.stderr, f"told on the terminal, too: {done.stderr}")
        return done.stdout.strip()

    def _write_file(self, conversation):
        """as a client of stdio does, of its tenant; there is something to remove then."""
        client = Stdio(self.site.config)
        client.initialize()
        client.result("tools/call", {"name": "write_file", "arguments": {"conversationId": conversation, "filename": "a.txt", "text": SECRET}})
        client.process.stdin.close()
        client.process.wait(30)

    def acts(self, before=()):
        """Each command; (act, the fields that its line must have)."""
        self._write_file("kept")
        token = self.command("token", "add", "--tenant", "bob", before=before)
        yield "token-add", {"tenant": "bob", "id": token.split("_")[1], "scopes": "run,files,network,admin"}
        self.command("token", "revoke", token.split("_")[1], before=before)
        yield "token-revoke", {"tenant": "bob", "id": token.split("_")[1]}
        name = f"{self.folder}/{secrets.token_hex(4)}.tar"
        self.command("backup", name, before=before)
        yield "backup", {"file": name, "conversations": "1"}
        self.command("purge", "--tenant", "local", "--yes", before=before)
        yield "purge", {"tenant": "local", "conversations": "1"}
        self.command("restore", name, "--tenant", "local", before=before)
        yield "restore", {"tenant": "local", "conversations": "1"}
        self.command("oauth", "passphrase", said=PASSPHRASE + "\n", before=before)
        yield "oauth-passphrase", {}
        code = self.command("oauth", "code", before=before)
        yield "oauth-code", {}
        self.held = (token, code, PASSPHRASE, SECRET)


def _office(settings=None):
    site = sites.own({"SANDCGI_AUTH": "token", "SANDCGI_SECRET_FILE": None} | (settings or {}), start=False)
    site.settings["SANDCGI_TOKENS_FILE"] = f"{site.folder}/tokens"
    open(f"{site.folder}/tokens", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    os.chmod(f"{site.folder}/tokens", 0o600)
    if (settings or {}).get("SANDCGI_LOG"):
        site.settings["SANDCGI_LOG"] = site.log_path
    site.write_config()
    return Office(site)


def _expect(office, text, before=()):
    for act, fields in office.acts(before):
        wait_until(lambda: f"audit={act} " in text(), 30, act)
        lines = [line for line in text().splitlines() if f"audit={act} " in line]
        equal(len(lines), 1, f"{act}: {lines}")
        equal({name: _field(lines[0], name) for name in fields}, fields, lines[0])
        equal(_field(lines[0], "uid"), str(os.getuid()), lines[0])
    equal([one for one in office.held if one in text()], [], "secrets in the log")


@test("an administrator's command is a line of the log of the server that runs, and not of the terminal", timeout=120, core=True)
def _():
    office = _office()
    site = office.site
    site.start_server()
    wait_until(lambda: "listening on" in site.log(), 30, "it runs")
    _expect(office, site.log)


@test("without a server an administrator's command is a line of SANDCGI_LOG, or of syslog", timeout=120)
def _():
    office = _office({"SANDCGI_LOG": "file"})
    open(office.site.log_path, "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    if IS_ROOT:
        sandboxes = os.stat(office.site.root)
        os.chown(office.site.log_path, sandboxes.st_uid, sandboxes.st_gid)
    _expect(office, office.site.log)
    with _syslog() as (before, text):
        _expect(_office(), text, before)


@contextlib.contextmanager
def _syslog():
    """(what executes a command, what has come to its /dev/log)"""
    if not IS_ROOT:
        raise Skip("only root can put a socket at /dev/log")
    path, received = f"{new_folder('syslog')}/log.sock", []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(path)
        log.setblocking(False)

        def text():
            try:
                while True:
                    received.append(log.recv(8192).decode())
            except BlockingIOError:
                return "\n".join(received)
        own_dev = ('mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && ln -s "$1" /dev/log && shift && exec "$@"')
        before = ("unshare", "--mount", "sh", "-c", own_dev, "sh", path)
        if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
            raise Skip("no /dev of its own here")
        yield before, text


@test("a change of an edge's nodes by hand is a line of syslog; one that is seen while watching, of standard error")
def _():
    folder = new_folder("edge")
    listed, rendered = f"{folder}/nodes", f"{folder}/nodes.conf"
    command = [sites.BINARY, "nodes", "--from", "file", "--file", listed, "--render", rendered]

    def list_nodes(n):
        with open(f"{listed}.new", "w", encoding="ascii") as file:
            file.write("".join(f"n{i} 127.0.0.1:{9000 + i}\n" for i in range(n)))
        os.rename(file.name, listed)
    list_nodes(2)
    with _syslog() as (before, text):
        for _twice in range(2):
            done = subprocess.run([*before, *command], capture_output=True, text=True, check=False)
            equal((done.returncode, done.stderr), (0, ""))
        lines = [line for line in text().splitlines() if " audit=nodes " in line]
        equal([_fields(line, "file", "nodes", "uid") for line in lines], [(rendered, "2", str(os.getuid()))], "the second time nothing changes")
    with open(f"{folder}/log", "wb") as log, subprocess.Popen([*command, "--watch", "--every", "100ms"], stderr=log) as watching:
        at_test_end(procs.end, watching)
        list_nodes(3)

        def lines_of_log():
            with open(log.name, encoding="utf-8") as file:
                return [_fields(line, "file", "nodes") for line in file if " audit=nodes " in line]
        wait_until(lambda: lines_of_log() == [(rendered, "3")], 20, "a line")
        procs.end(watching)


@test("start, reload, drain and stop are lines with who asked; a start and a reload that are refused are lines with the cause", timeout=120)
def _():
    office = _office()
    site = office.site

    def line(act):
        def found():
            return [line for line in site.log().splitlines() if re.search(rf" audit={act}( |$)", line)]
        wait_until(found, 30, act)
        return found()[-1]
    good = site.settings["SANDCGI_LISTEN"]
    site.settings["SANDCGI_LISTEN"] = f"{site.folder}/none/at-all/front.sock"
    site.write_config()
    site.start_server().wait(30)
    contains(line("start-refused"), "SANDCGI_LISTEN")
    site.settings["SANDCGI_LISTEN"] = good
    site.write_config()
    site.start_server()
    contains(line("start"), "starts")
    wait_until(lambda: "listening on" in site.log(), 30, "it runs")
    site.reload()
    equal(_fields(line("reload"), "uid", "pid"), (str(os.getuid()), str(os.getpid())))
    site.settings["SANDBOX_NETWORK"] = "perhaps"
    site.reload()
    refused = line("reload-refused")
    contains(refused, "SANDBOX_NETWORK")
    equal(_fields(refused, "uid", "pid"), (str(os.getuid()), str(os.getpid())))
    with subprocess.Popen([site.binary, "drain", "--config", site.config], env=site.tool_environment()) as drain:
        for act in ("drain", "stop"):
            equal(_fields(line(act), "uid", "pid"), (str(os.getuid()), str(drain.pid)), act)
    site.process.wait(60)

"""What somebody sees who runs a server: check, doctor, status, metrics, the lines of the log."""
import functools
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time

import engine
import monitoring
import procs
import sites
from harness import IS_ROOT, TOP, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from proxy import Proxy
from stdio import Stdio


def _command(site, *arguments, settings=None, before=(), program=None, **environment):
    """(status, output, errors) of `sandcgi ARGUMENTS`, with settings of its own file that differ. before: what executes it; program: another one."""
    path = site.config
    if settings is not None:
        path = f"{site.folder}/other.env"
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{k}={v}\n" for k, v in (site.settings | settings).items() if v is not None))
        os.chmod(path, 0o600)
    done = subprocess.run([*before, program or site.binary, *arguments, "--config", path], env=sites.clean_environment() | sites.SANITIZER_ENV | environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@functools.cache
def _metrics():
    return f"127.0.0.1:{sites.free_port()}"


def _site():
    """What is changed in its files is made good by reload_nginx()."""
    return sites.with_settings(SANDCGI_METRICS=_metrics())


# ---- check ----

@test("check names what the settings name and is not there: one line each, with what to change", core=True)
def _():
    site = sites.shared()
    equal(_command(site, "check")[2], "", "of settings that a server runs with")
    none = f"{new_folder('check')}/none"
    faults = {"SANDBOX_ROOT": (f"{none}/at/all", f"there is no folder {none}/at"), "SANDCGI_USER": ("nobody-here", "no such account"),
              "SANDCGI_LISTEN": (f"{none}/at/front.sock", f"there is no folder {none}/at"),
              "SANDCGI_SECRET_FILE": (f"{none}/secret", f"{none}/secret"), "SANDBOX_CA": (f"{none}/ca.pem", "cannot be read")}
    status, _out, errors = _command(site, "check", settings={name: value for name, (value, _) in faults.items()})
    equal(status, 1)
    lines = errors.splitlines()
    equal(len(lines), len(faults), errors)
    for name, (_value, words) in faults.items():
        one = [line for line in lines if name in line]
        equal(len(one), 1, f"{name} in {errors}")
        contains(one[0], words)
    status, _out, errors = _command(site, "check", settings={"DOCKER_HOST": "/run/docker.sock"})
    equal(status, 1)
    contains(errors, "DOCKER_HOST must be unix:///PATH")
    status, _out, errors = _command(site, "check", settings={"DOCKER_HOST": "unix:///nowhere.sock"})
    equal((status, errors.count("\n")), (0, 1), errors)  # an engine may be started later
    contains(errors, "note: the engine")
    status, out, errors = _command(site, "check", settings={"SANDBOX_WARM": "ruby=1"})
    equal((status, out.split(":")[0], errors.count("\n")), (0, "ok", 1), errors)  # its image may be built later
    contains(errors, "note: SANDBOX_WARM names ruby, which no image runs; there is: bash")


@test("a start that cannot be ends with one line, which names the setting, the cause and what to do")
def _():
    site = sites.own(start=False)
    folder, before = new_folder("start"), os.listdir(f"{site.folder}/run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        faults = [({"SANDCGI_METRICS": address}, f"SANDCGI_METRICS: {address}: another process listens there; is the server started already ("),
                  ({"SANDCGI_HUB": f"{folder}/none/at-all/hub.sock"}, f"there is no folder {folder}/none/at-all; make it"),
                  ({"SANDCGI_LISTEN": "192.0.2.1:9000"}, "SANDCGI_LISTEN: cannot listen on 192.0.2.1:9000: Cannot assign requested address; this machine does not have that address"),
                  ({"DOCKER_HOST": "tcp://127.0.0.1:1", "DOCKER_CERT_PATH": folder}, f"DOCKER_CERT_PATH: {folder}/ca.pem: No such file or directory"),
                  ({"SANDBOX_ROOT": "/proc/none"}, "SANDBOX_ROOT"),
                  ({"PUBLIC_BASE_URL": "https://"}, "PUBLIC_BASE_URL has no host; set it to")]
        for settings, words in faults:
            status, out, errors = _command(site, "serve", settings=settings)
            equal((status, out, errors.count("\n")), (1, "", 1), errors)
            contains(errors, words)
    equal(os.listdir(f"{site.folder}/run"), before, "no socket is left")


@test("check refuses files with secrets that every account can read")
def _():
    site = sites.own(start=False)
    for path in (site.config, site.settings["SANDCGI_SECRET_FILE"]):
        os.chmod(path, 0o644)
        status, _out, errors = _command(site, "check")
        equal(status, 1)
        contains(errors, f"chmod o-rwx {path}")
        check(site.settings["FILE_SECRET"] not in errors and site.secret not in errors, "a secret is printed")
        os.chmod(path, 0o600)
    equal(_command(site, "check")[0], 0)


# ---- the log ----

def _lines(site, *words):
    return [line for line in site.log().splitlines() if all(word in line for word in words)]


def _call(client, name, arguments, headers):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return client.post(json.dumps(body).encode(), headers)


@test("a call is one line with who called, what came of it and the run, and the run's line bears the same names", core=True)
def _():
    site, client, trace = sites.shared(), sites.client(), secrets.token_hex(16)
    answer = _call(client, "run_code", {"conversationId": client.conversation, "language": "bash", "code": "exit 3"},
                   {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    contains(answer.headers["traceresponse"], f"00-{trace}-")

    def lines(words):
        return _lines(site, words, trace)
    wait_until(lambda: lines("run ended") and lines("tools/call run_code"), 5, "both lines")
    call, run = lines("tools/call run_code")[0], lines("run ended")[0]
    name = hashlib.sha256(f"default\n{client.conversation}".encode()).hexdigest()[:12]
    for line in call, run:
        check(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info ", line), line)
        for words in (" tenant=default ", f" conversation={name} ", f" trace=00-{trace}-"):
            contains(line, words)
    for words in (" status=200 ", " outcome=ok ", " client=127.0.0.1 "):
        contains(call, words)
    for words in (" audit=run ", " language=bash ", " status=error ", " exit=3 ", " prestarted=no "):
        contains(run, words)
    equal(re.search(r" run=(\w{24})", call).group(1), re.search(r" run=(\w{24})", run).group(1))
    before = len(_lines(site, "tools/call run_code"))
    _call(client, "run_code", {"language": "cobol", "code": "x"}, {"traceparent": "00-made-up"})
    wait_until(lambda: len(_lines(site, "tools/call run_code")) > before, 5, "its line")
    refused = _lines(site, "tools/call run_code")[-1]
    contains(refused, " status=200 outcome=refused error=")
    check(re.search(r" trace=00-\w{32}-\w{16}-00$", refused) and "made-up" not in refused, refused)


@test("the log as JSON in a file: each line an object; after a rotation and HUP lines go to a new file, and none is lost")
def _():
    site = sites.own({"SANDCGI_LOG_FORMAT": "json", "SANDCGI_LOG_LEVEL": "info"}, start=False)
    site.settings["SANDCGI_LOG"] = f"{site.folder}/log/own.log"
    site.write_config()
    site.start()
    client = sites.new_conversation(site.client())
    path, moved = site.settings["SANDCGI_LOG"], f"{site.folder}/log/own.log.1"

    def calls(name):
        with open(name, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if line["message"] == "tools/list"]
    client.request("tools/list")
    wait_until(lambda: calls(path), 5, "a line")
    os.rename(path, moved)
    client.request("tools/list")
    site.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(path), 5, "another file")
    sent = 2
    end = time.monotonic() + 30
    while not calls(path) and time.monotonic() < end:  # one of a worker that was started then
        client.request("tools/list")
        sent += 1
    wait_until(lambda: len(calls(path)) + len(calls(moved)) == sent, 5, "every call")
    line = calls(path)[0]
    equal((line["status"], line["outcome"], line["tenant"], line["level"], line["role"]), (200, "ok", "default", "info", "worker"))


@test("logrotate, with the example that is installed, moves the log away without a lost line")
def _():
    program = shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not program:
        raise Skip("logrotate is not installed")
    site = sites.own({"SANDCGI_LOG_LEVEL": "info"}, start=False)
    site.settings["SANDCGI_LOG"] = path = f"{site.folder}/log/own/sandcgi.log"
    os.mkdir(os.path.dirname(path), 0o755)
    site.write_config()
    site.start()
    with open(f"{TOP}/service/sandcgi.logrotate", encoding="utf-8") as file:
        example = re.search(r"^/var/log/sandcgi/.*?^}$", file.read(), re.S | re.M).group()
    order = f"{site.binary} reload --config {site.config}"
    check("sandcgi reload --config" in example, example)
    example = re.sub(r"sandcgi reload --config \S+", order, example.replace("/var/log/sandcgi/", os.path.dirname(path) + "/"))
    with open(f"{site.folder}/logrotate.conf", "w", encoding="utf-8") as file:
        file.write(example + "\n")
    client, sent = site.client(), 0

    def lines(names=None):
        found = []
        for name in names or os.listdir(os.path.dirname(path)):
            with (gzip.open if name.endswith(".gz") else open)(f"{os.path.dirname(path)}/{name}", "rt", encoding="utf-8") as file:
                found += [line for line in file if " tools/list " in line]
        return found
    for rotation in range(1, 3):
        while not lines([os.path.basename(path)]):  # of a worker that was started after the rotation
            client.request("tools/list")
            sent += 1
            check(sent < 1000, "no worker writes to the new file")
        done = subprocess.run([program, "--force", "--state", f"{site.folder}/logrotate.state", f"{site.folder}/logrotate.conf"],
                              capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""))
        wait_until(lambda: os.path.exists(path), 10, "another file")
        check(os.path.exists(f"{path}.{rotation}" + ("" if rotation == 1 else ".gz")), os.listdir(os.path.dirname(path)))
    for _ in range(10):
        client.request("tools/list")
        sent += 1
    wait_until(lambda: len(lines()) == sent, 10, f"{sent} lines")


@test("without an engine, and on a full disk, /readyz says 503 and a line says why, while /healthz stays 200")
def _():
    for settings, words in (({"DOCKER_HOST": "unix:///nowhere.sock"}, "warn housekeeper: engine: the container engine at unix:///nowhere.sock cannot be reached: No such file or directory; "),
                            ({"SANDBOX_DISK_RESERVE": "1000000g"}, "SANDBOX_ROOT: runs and uploads are refused: the server's disk is nearly full")):
        site = sites.own(settings)
        client = site.client()
        wait_until(lambda client=client: client.http("GET", "/readyz", b"", {}).status == 503, 5, "not ready")
        equal(client.http("GET", "/readyz", b"", {}).body.strip(), b'{"status":"unavailable"}')
        equal(client.http("GET", "/healthz", b"", {}).status, 200)
        wait_until(lambda site=site, words=words: len(_lines(site, words)) == 1, 5, "one line")
        check(_lines(site, "readyz", "status=503", "outcome=failed"), site.log()[-500:])
        status, out, _errors = _command(site, "status")
        equal(status, 3 if "DOCKER_HOST" in settings else 0)
        check(re.search(rf"^(log|   )      .* {re.escape(words)}", out, re.M), out)
    equal(sites.shared().client().http("GET", "/readyz", b"", {}).status, 200)


@test("a start with no image, a bad line in the file of tokens, a root of another account and a clock of the past says each in a line, and answers")
def _():
    site = sites.own({"SANDBOX_IMAGES": "nothing-*"}, start=False)
    site.settings["SANDCGI_TOKENS_FILE"] = path = f"{site.folder}/tokens"
    with open(path, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("nonsense\n")
    site.write_config()
    later = time.time() + 86400
    site.start()
    wait_until(lambda: _lines(site, "warn housekeeper: runners: there is no image that SANDBOX_IMAGES=nothing-* allows", "builds them"), 10, "no image")
    contains(_lines(site, f"{path}, line 1: ")[0], "correct or remove it; nginx may refuse the file")
    site.stop()
    os.utime(site.root, (later, later))
    if IS_ROOT:
        os.chown(site.root, 12345, -1)
    site.start()
    wait_until(lambda: _lines(site, "warn housekeeper: clock: SANDBOX_ROOT was changed 86", "set the clock"), 10, "the clock")
    if IS_ROOT:
        wait_until(lambda: _lines(site, "belongs to the user 12345, who can open it", "chown it"), 10, "the owner")
        owner = _one(_findings(site), "owner")
        equal(subprocess.run(["sh", "-c", owner["mend"]], check=False).returncode, 0, owner["mend"])
        equal(os.stat(site.root).st_uid, 0)
    equal(site.client().http("GET", "/healthz", b"", {}).status, 200)


# ---- status ----

@test("status tells version, age, disk and limits; with --watch again and again")
def _():
    site = sites.shared()
    status, out, _errors = _command(site, "status")
    equal(status, 0)
    for line in (r"server   version \S+, up for \d+ \w+", r"disk     \d+ of \d+ MB free, .*\d+ conversations, \d+ kept results", "limits   not tried .*"):
        check(re.search(f"^{line}$", out, re.M), f"{line} in {out}")
    with subprocess.Popen([site.binary, "status", "--watch", "--config", site.config], stdout=subprocess.PIPE, text=True,
                          env=sites.clean_environment() | sites.SANITIZER_ENV) as process:
        begins = 0
        for line in process.stdout:
            begins += "server   version" in line
            if begins == 2:
                break
        process.terminate()


@test("the version is one everywhere: --version, server/discover, initialize, status and metrics")
def _():
    site = _site()
    client = site.client()
    version = subprocess.run([site.binary, "--version"], env=site.tool_environment(), capture_output=True, text=True, check=True).stdout.split()[1]
    discovered = client.modern("server/discover", {}).messages()[-1]["result"]
    legacy = client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}).json()["result"]
    told = {"server/discover": discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], "initialize": legacy["serverInfo"]["version"],
            "status": json.loads(_command(site, "status", "--json")[1])["version"], "metrics": version if f'sandcgi_build_info{{version="{version}"}}' in monitoring.read(_metrics())[1] else None}
    equal(told, dict.fromkeys(told, version))


# ---- limits ----

@test("a start tries the limits of memory and processes in containers, and tells what came of it")
def _():
    site = sites.own({"SANDBOX_LIMITS_CHECK": "refuse"})
    wait_until(lambda: _lines(site, "limits: "), 20, "a line")
    contains(_lines(site, "limits: ")[0], "limits: tested from inside a container: memory and processes are bounded")
    equal(json.loads(_command(site, "status", "--json")[1])["limits"], {"hold": True})
    equal(sites.new_conversation(site.client()).run("echo x", "bash")["stdout"], "x\n")
    wait_until(lambda: not site.all_containers(), 5, "no container of the test is left")


@test("an engine that takes limits and does not hold them: with SANDBOX_LIMITS_CHECK=refuse no program runs, and the reason is told")
def _():
    for key, words in ((b'"Memory', "the engine does not bound memory (SANDBOX_MEMORY)"), (b'"PidsLimit', "the engine does not bound processes (SANDBOX_PIDS)")):
        relay = Proxy(f"{new_folder('engine')}/engine.sock", change=lambda data, key=key: data.replace(key, b'"X' + key[2:])).start()
        site = sites.own({"SANDBOX_LIMITS_CHECK": "refuse", "DOCKER_HOST": f"unix://{relay.address}"})
        wait_until(lambda site=site: _lines(site, "limits: "), 20, "a line")
        contains(_lines(site, "limits: ")[0], words)
        client = sites.new_conversation(site.client())
        contains(client.run_error("echo x", "bash"), "container engine")
        equal(client.http("GET", "/readyz", b"", {}).status, 503)
        status = json.loads(_command(site, "status", "--json")[1])
        check(not status["limits"]["hold"] and words in status["limits"]["lastError"], status["limits"])


# ---- doctor ----

def _findings(site, settings=None, **how):
    status, out, errors = _command(site, "doctor", "--json", "--nginx", f"{site.folder}/conf", settings=settings, **how)
    told = json.loads(out)
    equal((status, errors), (0 if told["ok"] else 1, ""))
    return told["findings"]


@test("doctor finds nothing wrong with a server that works, and names what is: each with what mends it")
def _():
    site = _site()
    good = _findings(site)
    equal([one for one in good if one["state"] == "wrong"], [], good)
    for about in ("server", "engine", "images", "cgroup", "limits", "disk", "clock", "dns", "nginx", "site", "settings"):
        check(any(one["about"] == about for one in good), f"{about} in {good}")
    check(any(one["about"] == "certificate" and "does not trust" in one["text"] for one in good), good)  # the tests' own
    faults = {"DOCKER_HOST": ("unix:///nowhere.sock", "engine", "cannot be reached"), "SANDBOX_DISK_RESERVE": ("1000000g", "disk", "below SANDBOX_DISK_RESERVE"),
              "PUBLIC_BASE_URL": ("https://localhost:1", "site", "does not answer"), "SANDCGI_BROKER": (f"{site.folder}/none", "server", "does not answer"),
              "MCP_API_TOKEN": ("abcd" * 10, "tokens", "few different characters"), "SANDCGI_SECRET_FILE": ("/nowhere/secret", "settings", "/nowhere/secret")}
    bad = [one for one in _findings(site, {name: fault[0] for name, fault in faults.items()}) if one["state"] == "wrong"]
    for name, (_value, about, words) in faults.items():
        one = [found for found in bad if found["about"] == about and words in found["text"]]
        equal(len(one), 1, f"{name}: {bad}")
        check(one[0]["mend"] or about == "settings", one)
    contains(_findings(site, {"SANDBOX_MEMORY": "lots"})[0]["text"], "SANDBOX_MEMORY")
    elsewhere = [one for one in _findings(site, {"PUBLIC_BASE_URL": f"{site.base_url}/elsewhere"}) if one["about"] == "site"]
    equal([(one["state"], "answers 404" in one["text"], "correct PUBLIC_BASE_URL" in one["mend"]) for one in elsewhere], [("wrong", True, True)])
    status, out, _errors = _command(site, "doctor", "--quiet")
    equal((status, out), (0, ""))
    with open(f"{site.folder}/tokens", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f'"aaaaaaaa" "{"A" * 22},1700000000 t run"; \n"bbbbbbbb" "{"A" * 22},{int(time.time()) + 86400} t run";\n'
                   '"~^(?i:bearer) +0123456789abcdef$" "t"; # 0123456789ab\n')
    said = [(one["state"], one["text"].split(" in ")[0]) for one in _findings(site, {"SANDCGI_TOKENS_FILE": f"{site.folder}/tokens"}) if one["about"] == "tokens"]
    equal(said, [("wrong", "1"), ("note", "1"), ("note", "1")], "a weak token, one that has expired, one that will")
    mode = os.stat(site.front).st_mode
    at_test_end(os.chmod, site.front, mode)
    os.chmod(site.front, 0)  # as a web server that may not connect
    sick = [one for one in _findings(site) if one["about"] == "site"]
    equal((sick[0]["state"], "answers 502" in sick[0]["text"]), ("wrong", True), sick)


# A clock that is three days ahead; the certificate of the tests is for two.
AHEAD = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && id == CLOCK_REALTIME)
        ts->tv_sec += 3 * 86400;
    return (int)rc;
}
"""
OLD_NGINX = """#!/bin/sh
echo "nginx version: nginx/1.18.0 (Ubuntu)
configure arguments: --with-http_secure_link_module --with-http_auth_request_module" >&2
"""
DENIED = {
    "AppArmor": ('audit: type=1400 audit({now}.1:2): apparmor="DENIED" operation="connect" profile="nginx" name="{socket}" pid=1 comm="nginx"',
                 "AppArmor (nginx) denied nginx: connect {socket}", "aa-logprof allows it in the profile nginx"),
    "SELinux": ('type=AVC msg=audit({now}.1:3): avc:  denied  {{ search }} for  pid=1 comm="sandcgi" name="run" scontext=u:r:sandcgi_t:s0 permissive=0',
                "SELinux (u:r:sandcgi_t:s0) denied sandcgi: search run", "audit2allow"),
}
WITH_AUDIT_LOG = 'mount -t tmpfs tmpfs /var/log && mkdir /var/log/audit && printf "%s\n" "$1" >/var/log/audit/audit.log && shift && exec "$@"'


def _one(findings, about):
    found = [one for one in findings if one["about"] == about]
    equal(len(found), 1, f"{about}: {findings}")
    return found[0]


@test("version, status, metrics and serverInfo name the build; doctor says when the server runs another one than its own")
def _():
    site = _site()
    version = subprocess.run([site.binary, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    check(re.fullmatch(r"\d+\.\d+\.\d+(\+[0-9A-Za-z.]+)?", version), version)
    equal(json.loads(_command(site, "status", "--json")[1])["version"], version)
    wait_until(lambda: monitoring.read(_metrics())[1].get(f'sandcgi_build_info{{version="{version}"}}') == 1, 30, "the version in the metrics")
    equal(site.client().request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
          .json()["result"]["serverInfo"]["version"], version)
    other = f"{new_folder('other')}/sandcgi"
    with open(site.binary, "rb") as file, open(other, "wb") as copy:
        copy.write(file.read().replace(version.encode(), version.translate(str.maketrans("0123456789", "9876543210")).encode()))
    os.chmod(other, 0o755)
    done = subprocess.run([other, "doctor", "--json", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=False)
    said = [(one["state"], f"version {version} answers, this program is" in one["text"]) for one in json.loads(done.stdout)["findings"] if one["about"] == "server"]
    equal(said, [("wrong", True)], done.stdout)


@test("doctor says when others may enter SANDBOX_ROOT, nginx is too old, the clock was set or the certificate has expired; the log, too, where it can know")
def _():
    site = _site()
    os.chmod(site.root, 0o711)
    found = _one(_findings(site), "owner")
    equal((found["state"], "is open to other accounts" in found["text"]), ("wrong", True), found)
    wait_until(lambda: _lines(site, "warn housekeeper: SANDBOX_ROOT", "open to other accounts; a reload mends it"), 15, "a line")
    equal(subprocess.run(["sh", "-c", found["mend"]], check=False).returncode, 0, found["mend"])
    wait_until(lambda: _lines(site, "SANDBOX_ROOT: its mode is right again"), 15, "its end")
    check(not any(one["about"] == "owner" for one in _findings(site)), "after what mends it")
    old = new_folder("old-nginx")
    with open(f"{old}/nginx", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        file.write(OLD_NGINX)
    nginx = [one for one in _findings(site, PATH=f"{old}:{os.environ['PATH']}") if one["about"] == "nginx" and one["state"] == "wrong"]
    equal(len(nginx), 1, nginx)
    contains(nginx[0]["text"], "this nginx is version 1.18.0, which is too old: install 1.20 or later")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{old}/ahead.so"], input=AHEAD, text=True, check=True)
    options = sites.SANITIZER_ENV["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
    ahead = _findings(site, LD_PRELOAD=f"{old}/ahead.so", ASAN_OPTIONS=options)
    clock = _one([one for one in ahead if "clock was set" in one["text"]], "clock")
    contains(clock["text"], "the clock was set forward by 259")
    check(clock["state"] in ("wrong", "note"), clock)
    found = [one for one in ahead if one["about"] == "certificate" and one["state"] == "wrong"]
    equal([one["text"] for one in found], ["the certificate of PUBLIC_BASE_URL expired 1 days ago"])
    contains(found[0]["mend"], "renew it, then: ")


def _certificate(host, days):
    """(certificate, key), self-signed; of 0 days: it has expired."""
    folder = new_folder("certificate")

    def run(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)
    with open(f"{folder}/names", "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:{host}\n")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem", "-out", "request.pem", "-subj", f"/CN={host}")
    run("x509", "-req", "-in", "request.pem", "-signkey", "key.pem", "-days", str(days), "-extfile", "names", "-out", "cert.pem")
    return f"{folder}/cert.pem", f"{folder}/key.pem"


@test("a certificate that has expired, or is for another host, is a line of the server's own log soon after the start, and wrong for doctor")
def _():
    def started(host, days):
        cert, key = _certificate(host, days)
        return sites.own({"SANDCGI_LOG_LEVEL": "info"}, nginx={"CERT": cert, "CERT_KEY": key})
    well = started("localhost", 2)  # it is looked at first
    for site, words in ((started("localhost", 0), "expired 0 days ago"), (started("other.example.org", 2), "is for another host")):
        line = f"warn housekeeper: the certificate of PUBLIC_BASE_URL {words}: clients refuse it"
        wait_until(lambda of=site, what=line: _lines(of, what), 30, line)
        found = [one for one in _findings(site) if one["about"] == "certificate" and one["state"] == "wrong"]
        equal([one["text"] for one in found], [f"the certificate of PUBLIC_BASE_URL {words}"])
    check(not _lines(well, "certificate"), "a good one is told")


@test("doctor finds what AppArmor or SELinux has denied, of this day and of this server, and says what allows it")
def _():
    if not IS_ROOT:
        raise Skip("only root reads the kernel's log")
    site = _site()

    def denied(line):
        """What doctor makes of a line in auditd's log."""
        before = ("unshare", "--mount", "sh", "-c", WITH_AUDIT_LOG, "sh", line.format(now=now, socket=site.front))
        return [(one["state"], one["text"], one["mend"]) for one in _findings(site, before=before) if one["about"] == "denied" and one["state"] != "ok"]
    now = int(time.time())
    for line, text, mend in DENIED.values():
        found = denied(line)
        equal([one[:2] for one in found], [("wrong", text.format(socket=site.front))], line)
        contains(found[0][2], mend)
    equal(denied(DENIED["AppArmor"][0].replace("{socket}", "/srv/www"))[0][0], "note", "of the web server's other files")
    for line in (DENIED["AppArmor"][0].replace("{socket}", "/x").replace('"nginx"', '"other"'), DENIED["AppArmor"][0].replace("{now}", "1700000000")):
        equal(denied(line), [], line)


OUTER = """
{user}
pid "{folder}/run/outer.pid";
events {{ }}
http {{
    client_body_temp_path "{folder}/tmp/body"; fastcgi_temp_path "{folder}/tmp/fastcgi"; proxy_temp_path "{folder}/tmp/outer";
    scgi_temp_path "{folder}/tmp/scgi"; uwsgi_temp_path "{folder}/tmp/uwsgi";
    access_log off;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://127.0.0.1:{inner}; }}
    }}
}}
"""


def _second_nginx(site):
    """The address of an nginx whose only words about the site's are proxy_pass."""
    port, path = sites.free_port(), f"{site.folder}/conf/outer.conf"
    account = sites.web_account()
    with open(path, "w", encoding="ascii") as file:
        file.write(OUTER.format(folder=site.folder, port=port, inner=site.http_port, user=f"user {account};" if account else ""))
    process = subprocess.Popen([*sites.DIE_WITH_US, sites.nginx_binary(), "-e", f"{site.folder}/log/outer-error.log", "-c", path, "-g", "daemon off;"])
    at_test_end(lambda: procs.end(process, 20))

    def accepts():
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0
    wait_until(accepts, 20, "the second nginx listens")
    return f"http://127.0.0.1:{port}"


def _doctor(program, settings, folder):
    """What doctor of this program prints: its lines, and their states and subjects."""
    path = f"{folder}/settings"
    with open(path, "w", encoding="ascii", opener=lambda at, flags: os.open(at, flags, 0o600)) as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())
    done = subprocess.run([program, "doctor", "--config", path], capture_output=True, text=True, check=False, env=sites.clean_environment() | sites.SANITIZER_ENV)
    lines = done.stdout.splitlines()
    return done.returncode, lines, [tuple(line.split()[:2]) for line in lines[:-1]]


@test("doctor knows the settings of sandcgi stdio: it looks for no server and no web server, and ends with a count or ok")
def _():
    folder = new_folder("stdio-doctor")
    settings = {"SANDBOX_ROOT": f"{folder}/sandboxes", "FILE_SECRET": "0123456789abcdef" * 2, "PUBLIC_BASE_URL": "file:", "DOCKER_HOST": engine.host(), "SANDBOX_WARM": "bash=1"}
    status, lines, found = _doctor(sites.BINARY, settings, folder)
    equal((status, [one for one in found if one[0] == "wrong"]), (0, []), lines)
    check(not {about for _state, about in found} & {"server", "site", "nginx", "ports", "dns", "tokens", "account"}, lines)
    notes = sum(one[0] == "note" for one in found)
    equal(lines[-1], f"0 wrong, {notes} to note" if notes else "ok")
    status, lines, found = _doctor(sites.BINARY, settings | {"DOCKER_HOST": "unix:///nowhere.sock"}, folder)
    equal((status, [one for one in found if one[0] == "wrong"]), (1, [("wrong", "engine")]), lines)
    contains("\n".join(lines), "start Docker or Podman, or correct DOCKER_HOST")


@test("doctor without settings finds those that a desktop client's start has made")
def _():
    home = new_folder("desktop")
    environment = {"HOME": home, "XDG_STATE_HOME": "", "DOCKER_HOST": engine.host(), "SANDCGI_BROKER": f"{home}/no-server.sock"}
    client = Stdio(None, environment=environment, cwd="/")
    client.initialize()
    client.process.stdin.close()
    client.process.wait(30)
    done = subprocess.run([sites.BINARY, "doctor"], capture_output=True, text=True, check=False, env=sites.clean_environment() | sites.SANITIZER_ENV | environment, cwd="/")
    equal((done.returncode, [line for line in done.stdout.splitlines() if line.startswith("wrong")]), (0, []), done.stdout + done.stderr)
    contains(done.stdout, f"{home}/.local/state/sandcgi/sandcgi.env: what they name is there")


# The server's container, as far as doctor sees it: the script that starts it, and nginx's container, which has a name there and no other name.
IN_COMPOSE = """
ip link set lo up && mount -t tmpfs tmpfs /usr/local/bin && printf '#!/bin/sh\n' >/usr/local/bin/container.sh && chmod 755 /usr/local/bin/container.sh
mkdir -p "$1/nginx" && printf '127.0.0.1 nginx\n' >"$1/hosts" && : >"$1/nginx/healthz" && mount --bind "$1/hosts" /etc/hosts
/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory "$1/nginx" 8080 >/dev/null 2>&1 &
for i in $(seq 100); do bash -c ': </dev/tcp/127.0.0.1/8080' 2>/dev/null && break; sleep 0.1; done
shift; "$@"; status=$?; kill $!; exit $status
"""


@test("in the server's container of Compose doctor asks nginx's container, whatever the public name is there, and each command is docker-compose's")
def _():
    if not IS_ROOT:
        raise Skip("needs root for a container's view")
    site, folder = _site(), new_folder("compose-doctor")
    program = shutil.copy(sites.BINARY, f"{folder}/sandcgi")

    def doctor(**settings):
        before = ("unshare", "--mount", "--net", "bash", "-c", IN_COMPOSE, "bash", folder)
        status, out, errors = _command(site, "doctor", settings={"PUBLIC_BASE_URL": "https://sandbox.example.org"} | settings, before=before, program=program)
        check(out, errors)
        lines = out.splitlines()
        return status, lines, [(line.split()[:2], line) for line in lines[:-1]]
    status, lines, found = doctor()
    equal((status, [line for (state, _about), line in found if state == "wrong"]), (0, []), lines)
    equal([line.split(None, 2)[2] for (_state, about), line in found if about == "site"], ["http://nginx:8080/healthz answers 200"])
    check(not {"nginx", "dns", "certificate"} & {about for (_state, about), _line in found}, lines)
    notes = sum(state == "note" for (state, _about), _line in found)
    equal(lines[-1], f"0 wrong, {notes} to note" if notes else "ok")
    status, lines, found = doctor(SANDCGI_BROKER=f"{folder}/none", DOCKER_HOST="unix:///nowhere.sock")
    equal((status, [about for (state, about), _line in found if state == "wrong"]), (1, ["server", "engine"]), lines)
    for mend in "docker-compose up -d)", "start the host's engine, or correct DOCKER_SOCKET)":
        contains("\n".join(lines), f"(to mend it: {mend}")


@test("of a server that does not run doctor finds that alone, with the command that starts it in this way to run it")
def _():
    site = _site()
    settings = {"SANDCGI_BROKER": f"{site.folder}/none"}
    equal([one["about"] for one in _findings(site, settings) if one["state"] == "wrong" and one["about"] != "ports"], ["server"])  # which does run
    mode = os.stat(site.front).st_mode
    at_test_end(os.chmod, site.front, mode)
    os.chmod(site.front, 0)  # nginx answers 502, as when nothing listens
    found = [one for one in _findings(site, settings) if one["state"] == "wrong" and one["about"] != "ports"]
    equal([one["about"] for one in found], ["server"])
    clone = new_folder("clone")
    os.makedirs(f"{clone}/build")
    with open(f"{clone}/start.sh", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        file.write("#!/bin/sh\n")
    _status, out, _errors = _command(site, "doctor", settings=settings, program=shutil.copy(sites.BINARY, f"{clone}/build/sandcgi"))
    contains(out, "(to mend it: ./start.sh)")


@test("doctor hears a stream's first event at once, and says when a web server keeps it back, or why it has not listened")
def _():
    site = _site()
    at_test_end(site.reload_nginx)
    outer = {"PUBLIC_BASE_URL": _second_nginx(site)}

    def stream(settings=None):
        found = [one for one in _findings(site, settings) if one["about"] == "stream"]
        equal(len(found), 1, found)
        return found[0]["state"], found[0]["text"], found[0]["mend"]
    for settings in None, outer:
        equal(stream(settings)[0], "ok")
    for settings, words in ({"MCP_API_TOKEN": ""}, "it needs a token"), ({"MCP_API_TOKEN": "0123456789abcdef" * 3}, "does not know MCP_API_TOKEN"), ({"SANDCGI_HUB": ""}, "SANDCGI_HUB is empty"):
        state, text, _mend = stream(settings)
        equal((state, text[:13]), ("note", "not checked: "))
        contains(text, words)
    with open(f"{site.folder}/conf/fastcgi.conf", "r+", encoding="utf-8") as file:
        text = file.read().replace("fastcgi_pass_header X-Accel-Buffering;", "")
        file.seek(0)
        file.truncate()
        file.write(text)
    site.set_token("other", "0123456789abcdef0123")  # nginx reads its files again
    equal(stream()[0], "ok", "without a second nginx")
    state, text, mend = stream(outer)
    equal(state, "wrong", text)
    contains(text, f"{outer['PUBLIC_BASE_URL']}/mcp does not arrive")
    contains(mend, "fastcgi_pass_header X-Accel-Buffering;")


@test("doctor compares nginx's files with this version's and with the settings, and looks at the public name and at ports")
def _():
    site = _site()
    at_test_end(site.reload_nginx)

    def wrong(about, settings=None):
        return [one for one in _findings(site, settings) if one["about"] == about and one["state"] == "wrong"]
    for settings, about, words in (({"SANDCGI_LISTEN": f"{site.folder}/run/other.sock"}, "nginx", "but SANDCGI_LISTEN is"), ({"SANDCGI_HUB": ""}, "nginx", "but SANDCGI_HUB is empty"),
                                   ({"SANDCGI_MAX_BODY": "17m"}, "nginx", "up to 16m (BODY_MAX), less than SANDCGI_MAX_BODY"),
                                   ({"SANDBOX_UPLOAD_MAX": "3g"}, "nginx", "up to 2g (UPLOAD_MAX), less than SANDBOX_UPLOAD_MAX"),
                                   ({"SANDBOX_URL_TTL": "1h"}, "nginx", "SIGNED_URLS of nginx is empty"), ({"FILE_SECRET": "0123456789abcdef" * 4}, "nginx", "another FILE_SECRET"),
                                   ({"PUBLIC_BASE_URL": "https://nowhere.invalid"}, "dns", "nowhere.invalid of PUBLIC_BASE_URL has no address")):
        found = wrong(about, settings)
        equal(len(found), 1, f"{settings}: {found}")
        contains(found[0]["text"], words)
        check(found[0]["mend"], found)
    with open(f"{site.folder}/conf/server.conf", "a", encoding="utf-8") as file:
        file.write("# by hand\n")
    os.remove(f"{site.folder}/conf/mcp.conf")
    contains(wrong("nginx")[0]["text"], ": mcp.conf server.conf")
    refused = "it refuses its configuration, and would not start again: open()"
    equal([one["text"].startswith(refused) for one in wrong("nginx")], [False, True] if IS_ROOT else [False])
    os.remove(f"{site.folder}/conf/values")
    equal([(one["state"], "values" in one["text"]) for one in _findings(site) if one["about"] == "nginx"][0], ("note", True))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        down = {"SANDCGI_BROKER": f"{site.folder}/none", "SANDCGI_METRICS": address}
        contains(wrong("ports", down)[0]["text"], f"SANDCGI_METRICS={address}: another program has the port")
    equal(wrong("ports", down), [])

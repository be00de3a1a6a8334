"""Limits of tenants, from the file of SANDBOX_TENANTS_FILE: each over its edge, with another tenant that does not notice."""
import functools
import json
import os
import re
import signal
import subprocess
import time

import oauth
import runs
import sites
from harness import TOP, check, contains, equal, new_folder, test, wait_until
from mcp import end_run

FILE = """
[busy]
concurrent_runs = 1
[often]
runs_per_minute = 2
[long]
run_seconds_per_day = 2
[large]
bytes = 3m
[single]
languages = bash
[narrow]
network = none
languages = bash
toolsets = files
"""


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@functools.cache
def _file():
    path = f"{new_folder('tenants')}/tenants.ini"
    _write(path, FILE)
    return path


def _site():
    return sites.with_settings(SANDBOX_TENANTS_FILE=_file())


def _client(tenant, site=None):
    return (site or _site()).client_of(tenant)


def _busy(client, tool, arguments):
    """(text, fields) of a call that must be refused for now."""
    result = client.tool(tool, arguments)
    check(result.get("isError") is True, f"not refused: {result}")
    return result["content"][0]["text"], result.get("structuredContent")


def _arguments(client, code="true", **more):
    return {"conversationId": client.conversation, "language": "bash", "code": code} | more


def _sandbox(client, **more):
    return client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"} | more)["sandboxId"]


@test("concurrent_runs: further runs wait, then are refused with the limit named; commands in a sandbox count, too")
def _():
    client, other = _client("busy"), _client("other")
    sandbox = _sandbox(client)
    run = client.begin_run(runs.UNTIL_GO, "bash")
    wait_until(lambda: client.structured("list_runs", {})["runs"], 10, "the run is under way")
    began = time.monotonic()
    text, fields = _busy(client, "run_code", _arguments(client, waitMs=1000))
    contains(text, "concurrent_runs: 1 programs of yours are running; the limit is 1")
    equal(fields["status"], "busy")
    check(fields["retryAfterMs"] > 0, fields)
    check(time.monotonic() - began >= 0.9, "it did not wait")
    contains(client.tool_error("exec", {"sandboxId": sandbox, "commands": ["true"]}), "concurrent_runs")
    equal(other.run("echo hi", "bash")["stdout"], "hi\n")
    client.upload("go", b"")
    equal(end_run(run, 30)[0]["status"], "ok")
    # A run that waits begins when a command in the sandbox ends.
    done = client.begin_legacy("exec", {"sandboxId": sandbox, "commands": ["sleep 2"]})
    time.sleep(0.5)
    equal(client.run("echo hi", "bash", waitMs=30000)["stdout"], "hi\n")
    equal(end_run(done, 30)[0]["success"], True)
    # Calls at the same time cannot pass the limit together.
    calls = [client.begin_legacy("exec", {"sandboxId": sandbox, "commands": ["sleep 1"]}) for _ in range(4)]
    refused = [end_run(call, 30)[0].get("isError", False) for call in calls]
    equal(sorted(refused), [False, True, True, True])
    client.structured("close_sandbox", {"sandboxId": sandbox})


@test("concurrent_runs: a program that goes on after a reload or another start counts")
def _():
    site = sites.own({"SANDBOX_TENANTS_FILE": _file(), "SANDBOX_TIMEOUT": "2m"})
    client = _client("busy", site)
    for signum in signal.SIGHUP, signal.SIGKILL:
        run = runs.begin(client, "sleep 100")
        before = site.broker()
        os.kill(site.process.pid if signum == signal.SIGHUP else before, signum)
        wait_until(lambda: site.broker() not in (before, None), 20, "another broker")
        wait_until(lambda: f"run {run} goes on; it began under another broker" in site.log(), 20, "the run came to it")
        text, _fields = _busy(client, "run_code", _arguments(client, waitMs=1000))
        contains(text, "concurrent_runs: 1 programs of yours are running; the limit is 1")
        equal(runs.cancel(client, run)["status"], "cancelled")
        equal(client.run("echo hi", "bash", waitMs=30000)["stdout"], "hi\n")


@test("runs_per_minute: every kind of program counts, and the answer says when the next may begin", core=True)
def _():
    client, other = _client("often"), _client("other")
    sandbox = _sandbox(client)
    equal(client.structured("exec", {"sandboxId": sandbox, "commands": ["true"]})["success"], True)
    text, fields = _busy(client, "run_code", _arguments(client))
    contains(text, "runs_per_minute: you have begun as many programs as you may; the limit is 2 in a minute")
    check(re.search(r"may begin at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text), text)
    check(0 < fields["retryAfterMs"] <= 30000, fields)
    for tool, arguments in (("exec", {"sandboxId": sandbox, "commands": ["true"]}),
                            ("run_code", {"conversationId": client.conversation, "language": "python", "code": "1", "session": True}),
                            ("run_code", _arguments(client, background=True)),
                            ("create_sandbox", {"conversationId": client.conversation, "language": "bash"}),
                            ("install_package", {"conversationId": client.conversation, "language": "python", "packages": ["x"]})):
        contains(client.tool_error(tool, arguments), "runs_per_minute", tool)
    equal(other.run("echo hi", "bash")["stdout"], "hi\n")
    client.structured("close_sandbox", {"sandboxId": sandbox})


@test("run_seconds_per_day: used up it is refused until midnight of UTC, after a reload and a restart, too", timeout=120)
def _():
    site = sites.own({"SANDBOX_TENANTS_FILE": _file()})
    client, other = _client("long", site), _client("other", site)
    sandbox = _sandbox(client)
    client.run("sleep 1.2", "bash")
    client.structured("exec", {"sandboxId": sandbox, "commands": ["sleep 1"]})

    def refused():
        text, fields = _busy(client, "run_code", _arguments(client))
        found = re.search(r"have run for ([23]) s on this day of UTC; the limit is 2 s, until (\S+T00:00:00Z)", text)
        check(found, text)
        check(0 < fields["retryAfterMs"] <= 86400000, fields)
        contains(client.tool_error("exec", {"sandboxId": sandbox, "commands": ["true"]}), "run_seconds_per_day")
    refused()
    equal(other.run("echo hi", "bash")["stdout"], "hi\n")
    before = set(site.masters())
    site.reload()
    wait_until(lambda: not before & set(site.masters()), 30, "the processes before have ended")
    refused()
    equal(other.run("echo hi", "bash")["stdout"], "hi\n")
    os.kill(site.process.pid, signal.SIGTERM)
    site.process.wait(40)
    with open(f"{site.root}/.state/run-seconds", encoding="utf-8") as file:
        saved = json.load(file)
    equal(list(saved["ms"]), ["long"])
    check(2000 <= saved["ms"]["long"] < 20000, saved)
    site.start_server()
    site.wait_healthy()
    text, _fields = _busy(client, "run_code", _arguments(client))
    contains(text, "run_seconds_per_day")


@test("bytes: all conversations of a tenant count together, for programs and for writes; deleting one makes room")
def _():
    client, other = _client("large"), _client("other")
    second = sites.new_conversation(client.fresh())
    equal(client.run("head -c 2000000 /dev/urandom >a", "bash")["status"], "ok")
    text = second.tool_error("upload_file", {"conversationId": second.conversation, "filename": "b", "content": "QUJD" * 400000})
    contains(text, "the files of all your conversations take 1.9 MiB; 1.1 MiB more would pass the limit of 3.0 MiB (bytes): delete files")
    equal(second.run("head -c 500000 /dev/urandom >b", "bash")["status"], "ok")
    result = second.run("head -c 3000000 /dev/urandom >c", "bash")
    check("the files of all your conversations take" in json.dumps(result), result)
    check(os.path.getsize(_path(client, "a")) == 2000000, "another conversation's file was removed")
    contains(second.run("ls", "bash")["stdout"], "b\n")  # what was too much is gone, so the next may run
    equal(other.run("head -c 4000000 /dev/urandom >a; echo done", "bash")["stdout"], "done\n")
    second.run("cd /tmp; head -c 2000000 /dev/zero >z; tar czf /data/z.tgz z", "bash")
    text = second.tool_error("upload_archive", {"conversationId": second.conversation, "filename": "z.tgz"})
    contains(text, "of all your conversations")
    client.structured("delete_conversation", {"conversationId": client.conversation})
    second.upload("e", b"x" * 1200000)


def _path(client, name):
    root = _site().root
    for folder in os.listdir(root):
        record = f"{root}/.state/{folder}.json"
        if os.path.exists(record):
            with open(record, encoding="utf-8") as file:
                if json.load(file)["conversationId"] == client.conversation:
                    return f"{root}/{folder}/{name}"
    return None


@test("network, languages and toolsets: what a tenant may not have is refused with the limit named, or not offered", core=True)
def _():
    client, other = _client("narrow"), _client("other")
    contains(client.run_error("print(1)", "python"), "language: not allowed by your limits (languages); allowed are: bash")
    session = {"conversationId": client.conversation, "language": "python", "code": "1", "session": True}
    contains(client.tool_error("run_code", session), "languages")
    wide = _client("single")  # the same limit of languages, and all tools
    for arguments in ({"language": "python"}, {"image": "sandcgi-runner-workbench"}):
        text = wide.tool_error("create_sandbox", {"conversationId": wide.conversation} | arguments)
        contains(text, "not allowed by your limits (languages)", str(arguments))
    equal(client.run("echo hi", "bash")["stdout"], "hi\n")
    contains(client.tool_error("run_code", _arguments(client, network=True)), "network")
    names = {row["name"] for row in client.result("tools/list")["tools"]}
    check("move_file" in names and "create_sandbox" not in names and "list_runs" not in names, names)
    all_names = {row["name"] for row in other.result("tools/list")["tools"]}
    check("create_sandbox" in all_names, all_names)


@test("a group of an access token's user has a section, whose limits count instead of the tenant's, for each tenant of the group")
def _():
    path = f"{new_folder('tenants')}/tenants.ini"
    _write(path, "[students]\nruns_per_minute = 2\nlanguages = bash\n[all-open]\nlanguages = python\n")
    one = oauth.OAuth(oauth.server({"SANDBOX_TENANTS_FILE": path, "SANDCGI_OAUTH_TENANT": "all-{tenant}", "SANDCGI_OAUTH_LIMITS": "tenant"}))
    one.register()

    def client_of(tenant):
        return sites.new_conversation(one.site.client().with_token(one.tokens(tenant=tenant, scope="run files")["access_token"]))

    student, other = client_of("students"), client_of("open")
    contains(student.tool_error("run_code", _arguments(student, language="python", code="1")), "languages")
    for _ in range(2):
        student.structured("run_code", _arguments(student, language="bash", code="true"))
    contains(_busy(student, "run_code", _arguments(student, language="bash", code="true"))[0], "runs_per_minute")
    other.structured("run_code", _arguments(other, language="python", code="1"))


@test("a bad file refuses start and check with file and line; with a bad one a reload keeps the limits that were; a good one holds", timeout=90)
def _():
    site = sites.own(start=False)
    path = site.settings["SANDBOX_TENANTS_FILE"] = f"{site.folder}/tenants.ini"
    site.write_config()
    _write(path, "[*]\nruns_per_minute = often\n")
    for command in ("check", "serve"):
        done = subprocess.run([site.binary, command, "--config", site.config], env=site.tool_environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30, check=False)
        equal(done.returncode, 1, command)
        contains(done.stderr, f'{path}:2: runs_per_minute is "often", but must be a whole number')
    _write(path, "[tight]\nlanguages = python\n")
    site.start()
    client = _client("tight", site)
    contains(client.run_error("true", "bash"), "languages")
    _write(path, "[tight]\nlanguage = bash\n")
    site.reload()
    wait_until(lambda: f"{path}:2: there is no such limit" in site.log(), 10, "the line")
    contains(client.run_error("true", "bash"), "languages")
    _write(path, "[tight]\nlanguages = bash\n")
    before = set(site.masters())
    site.reload()
    wait_until(lambda: not before & set(site.masters()), 30, "the processes before have ended")
    equal(client.run("echo hi", "bash")["stdout"], "hi\n")


@test("the example of a file of limits is one that is accepted")
def _():
    site = sites.own(start=False)
    site.settings["SANDBOX_TENANTS_FILE"] = f"{TOP}/fcgi/tenants.example.ini"
    site.write_config()
    done = subprocess.run([site.binary, "check", "--config", site.config], env=site.tool_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30, check=False)
    equal(done.stderr, "")

#!/usr/bin/env python3
"""The official conformance suite and real clients against a real nginx and engine.

A stage of tests/run.sh, which builds, and puts node and the npm packages into NODE and NODE_FOLDER.
"""
import argparse
import functools
import json
import os
import re
import subprocess
import sys

import house
import engine
import harness
import network
import oauth
import sites
import table
from harness import Failed, at_end, check, contains, equal, new_folder, test, wait_until
from mcp import API
from stdio import Stdio
from suite import SuiteRun, scored

REVISIONS = ("2025-11-25", "2026-07-28")
# Not scored by the suite, promised by us.
ALSO = {
    "2025-11-25": ("server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"),
    "2026-07-28": ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation",
                   "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
                   "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
                   "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition"),
}
# What the server as it is passes, without the fixtures.
WITHOUT_FIXTURES = {
    "2025-11-25": ("server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list",
                   "dns-rebinding-protection", "server-sse-multiple-streams", "server-session-lifecycle"),
    "2026-07-28": ("tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
                   "server-sse-multiple-streams", "caching", "sep-2164-resource-not-found",
                   "input-required-result-unsupported-methods", "http-header-validation"),
}
RUNS = []
STEPS = {"clients.mjs": 12, "analysis.mjs": 8, "desktop.mjs": 5, "oauth.mjs": 6}
LOGINS = {"suite": ("the suite's scenarios of authorization servers pass", 1), "remote": ("mcp-remote logs in, and again without a browser", 2),
          "inspector": ("the Inspector logs in, and again without a browser", 2)}


def once(function):
    """functools.cache that also remembers a failure, so that what does not start is tried only once."""
    @functools.cache
    def attempt(*args):
        try:
            return function(*args), None
        except Exception as problem:  # pylint: disable=broad-except
            return None, problem

    @functools.wraps(function)
    def wrapper(*args):
        value, problem = attempt(*args)
        if problem:
            raise Failed(f"{function.__name__}{args}: {problem}")
        return value
    return wrapper


@once
def served(fixtures):
    if fixtures and not os.access(house.FIXTURES, os.X_OK):
        raise Failed(f"{house.FIXTURES} is not built: make tests/conformance/sandcgi-conformance")
    one = house.House(fixtures, {} if fixtures else network.settings(SANDBOX_NETWORK_ASK="true"))
    at_end(one.stop)
    return one.start()


@once
def suite_run(revision, fixtures, place="/mcp"):
    one = SuiteRun(served(fixtures), revision, place)
    if fixtures:
        RUNS.append(one)
    return one


def register_scenario(revision, name, fixtures, place="/mcp"):
    @test(f"{revision} {name}{'' if fixtures else ' without the fixtures'}{'' if place == '/mcp' else ' at ' + place}", timeout=300,
          core=fixtures and place == "/mcp")
    def _():
        found = suite_run(revision, fixtures, place).result(name)
        check(found.passed and found.successes, f"{found.summary}\n" + "\n".join(found.failures + found.warnings))
        # An empty server has no resource to read.
        found.skipped = [one for one in found.skipped if fixtures or "returned no resources" not in one]
        unexpected = found.unexpected_warnings()
        check(not unexpected, "warnings that the suite's own reference does not get:\n" + "\n".join(unexpected))
        check(not found.skipped, "not passed but skipped:\n" + "\n".join(found.skipped))


def register_suite():
    for revision in REVISIONS:
        for name in (*scored(revision), *ALSO[revision]):
            register_scenario(revision, name, True)
            register_scenario(revision, name, True, API)
    for revision in REVISIONS:
        for name in WITHOUT_FIXTURES[revision]:
            register_scenario(revision, name, False)


@test("2026-07-28 server-stateless without the fixtures: only what needs a fixture was not tested", timeout=300)
def _():
    found = suite_run("2026-07-28", False).result("server-stateless")
    equal([one for one in found.failures if "Not testable: server does not list the diagnostic tool" not in one], [])
    check(found.successes >= 24, found.summary)


# ---- the SDKs' clients ----

def run_client(options, script="clients.mjs", site=None, steps_wanted=None):
    site = site or served(False)
    options = {"folder": os.environ["NODE_FOLDER"]} | options
    environment = os.environ | {"NODE_EXTRA_CA_CERTS": sites.certificate()[0], "HOME": new_folder("home")}
    done = subprocess.run([os.environ["NODE"], os.path.join(house.HERE, script), json.dumps(options)],
                          env=environment, capture_output=True, text=True, timeout=400, check=False,
                          stdin=subprocess.DEVNULL)
    # The SDKs print remarks of their own.
    steps = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "FAILED "))]
    bad = [line for line in steps if not line.startswith("ok ")]
    check(done.returncode == 0 and not bad, "\n".join(bad) + done.stderr[-1500:])
    equal(len(steps), steps_wanted or STEPS[script], "steps")
    # Also the run that was cancelled has left nothing behind.
    wait_until(lambda: not site.containers(), 10, "all containers are gone")


def over_https():
    site = served(False)
    return {"url": site.base_url + API, "token": site.token}


def over_stdio():
    site = served(False)
    environment = sites.clean_environment() | sites.SANITIZER_ENV | sites.OF_PROGRAMS
    return {"command": [sites.BINARY, "stdio", "--config", site.config], "env": environment}


def register_clients():
    for sdk, mode in (("v1", "legacy"), ("v2", "legacy"), ("v2", "auto"), ("v2", "2026-07-28")):
        for way, transport in (("https", over_https), ("stdio", over_stdio)):
            register_client(sdk, mode, way, transport)


def register_client(sdk, mode, way, transport):
    words = {"v1": "SDK 1.x", "v2": f"SDK 2.x {'pinned to ' + mode if mode[0] == '2' else mode}"}[sdk]

    @test(f"{words} over {way}: a whole session", timeout=450)
    def _():
        run_client({"sdk": sdk, "mode": mode} | transport())


def register_analysis():
    @test("SDK 1.x over https: a data analysis, from the table's upload to the archive of all and the deletion", timeout=450)
    def _():
        run_client(over_https(), "analysis.mjs")


@once
def with_oauth():
    """Its operator's passphrase allows clients."""
    site = sites.Site({"SANDCGI_OAUTH": "builtin"})
    at_end(site.stop)
    equal(oauth.set_passphrase(site).returncode, 0, "the passphrase")
    return site.start(), {"act": "allow", "tenant": "default", "passphrase": oauth.PASSPHRASE}


@once
def with_provider():
    """npm's oidc-provider, and a server that takes its tokens."""
    site = sites.Site()
    command = [os.environ["NODE"], os.path.join(house.HERE, "provider.mjs"),
               json.dumps({"folder": os.environ["NODE_FOLDER"], "resource": site.base_url + "/mcp"})]
    provider = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # pylint: disable=consider-using-with
    at_end(provider.wait)
    at_end(provider.stdin.close)
    at_end(site.stop)
    site.settings["SANDCGI_OAUTH"] = provider.stdout.readline().strip()
    site.write_config()
    return site.start(), {"login": "alice", "password": "any"}


def issuer_of(site):
    return site.base_url if site.settings["SANDCGI_OAUTH"] == "builtin" else site.settings["SANDCGI_OAUTH"]


def register_oauth():
    for sdk, words in (("v1", "SDK 1.x"), ("v2", "SDK 2.x")):
        for name, served_with in (("the builtin authorization server", with_oauth), ("a certified provider", with_provider)):
            @test(f"{words} over https: logs in at {name}, refreshes, asks for more, loses its grant", timeout=450)
            def _(sdk=sdk, served_with=served_with):
                site, answers = served_with()
                run_client({"sdk": sdk, "url": site.base_url + "/mcp", "issuer": issuer_of(site), "answers": answers}, "oauth.mjs", site)


    for program, (sentence, steps) in LOGINS.items():
        @test(f"builtin authorization server: {sentence}", timeout=200)
        def _(program=program, steps=steps):
            site, answers = with_oauth()
            options = {"program": program, "table": os.environ["TABLE_FOLDER"], "url": site.base_url + "/mcp", "issuer": issuer_of(site), "answers": answers}
            run_client(options, "logins.mjs", site, steps)


def register_desktop():
    @test("SDK 1.x over stdio in an empty home: the first session of a desktop client", timeout=120)
    def _():
        home = new_folder("home")
        environment = {"HOME": home, "PATH": os.environ["PATH"], "DOCKER_HOST": engine.host(), "SANDCGI_BROKER": f"{home}/none.sock"}
        run_client({"command": [sites.BINARY, "stdio"], "env": environment | sites.SANITIZER_ENV}, "desktop.mjs")


# ---- what a model pays for ----

# Digits are tokens, too, and those of a link are random.
LINK = "https://localhost:8443/files/8b18813ad7d16c2d62c3aab7b096898cf92737625aa5488efa94d835b287222b/Q2hhb9s-_kd83jHs0aPQwA/"


def tokens_of(*texts):
    """Of o200k."""
    done = subprocess.run([os.environ["NODE"], os.path.join(house.HERE, "tokens.mjs"), os.environ["NODE_FOLDER"]], input=json.dumps(texts),
                          capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def answered(code, language="python", conversation="tokens"):
    """The text of run_code at the place for models. conversation None: the server makes one."""
    names = {"conversationId": conversation} if conversation else {}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "run_code", "arguments": {"language": language, "code": code} | names}}
    [text, *_pictures] = sites.new_conversation(served(False).client()).post(message, path="/mcp").json()["result"]["content"]
    return re.sub(r"https://\S+/files/[0-9a-f]{64}/[^/]*/", LINK, text["text"])


def register_tokens():
    @test("tools/list of the core in tokens: at most 2,000, run_code's entry 600", timeout=60)
    def _():
        client = Stdio(served(False).config, answers="text", options=("--tools", "core"))
        client.initialize()
        listed = client.result("tools/list")
        rows = listed["tools"]
        equal(rows[0]["name"], "run_code")
        counts = tokens_of(*(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in (listed, *rows)))
        print(f"tools/list: {counts[0]} tokens; " + ", ".join(f"{row['name']} {n}" for row, n in zip(rows, counts[1:])))
        check(counts[0] <= 2000 and counts[1] <= 600, counts)

    @test("answers in tokens: two words and a chart at most 90, a failing program 30, 8 KB of output a tenth more than they are", timeout=120)
    def _():
        lines = "".join(f"line {n} of the output, with some words\n" for n in range(200))
        code = "import matplotlib.pyplot as plt\nprint('hello chart\\nsaved')\nplt.plot([1, 2])\nplt.savefig('chart.png')"
        chart, made = answered(code), answered(code, conversation=None)
        contains(chart, "/chart.png")
        contains(made, "\nconversationId: c")
        fails = answered("echo oops >&2; exit 3", "bash")
        counts = tokens_of(chart, fails.removeprefix("oops\n"), answered(f"print({lines!r}, end='')"), lines, made)
        print("tokens:", *counts)
        check(counts[0] <= 90 and counts[1] <= 30 and counts[2] <= 1.1 * counts[3] and counts[4] <= 96, f"{counts}: {made!r}, {fails!r}")


def register_last():
    @test("no log of all this holds a sanitizer's report, a crash or a token")
    def _():
        for site in sites.all_sites:
            log = site.log()
            for word in ("Sanitizer", "runtime error", "was ended by signal", site.token, site.settings["FILE_SECRET"]):
                check(word not in log, f"{word!r} in {site.log_path}: {log[max(0, log.find(word) - 300):][:1500]}")


_told = 0


def explain():
    """What the server has logged since the last time."""
    global _told
    lines = sites.all_sites[-1].log().splitlines() if sites.all_sites else []
    new, _told = lines[_told:], len(lines)
    return "log of the server:\n" + "\n".join(new[-30:]) if new else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="tests whose name contains NAME")
    parser.add_argument("--list", action="store_true", help="name the tests")
    parser.add_argument("--core", action="store_true", help="only the official suite, at one path")
    options = parser.parse_args()
    register_suite()
    register_clients()
    register_analysis()
    register_oauth()
    register_desktop()
    register_tokens()
    table_of_clients = table.register(lambda: served(False))
    register_last()
    if options.list:
        for one in harness.selected(options.only):
            print(one.sentence)
        return 0
    for one in harness.selected(None):
        one.module = "conformance"
    counts = harness.run_tests(options.only, explain, options.core)
    for one in RUNS:
        print(one.line())
    if not options.core:
        print(table_of_clients(), end="")
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] or not any(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

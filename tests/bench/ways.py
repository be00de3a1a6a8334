#!/usr/bin/env python3
"""How long each way takes from nothing to the first answer: seconds from the first command to the answer of a run_code (bash, echo), once,
and the machine's load. The engine, the runner images and the program are there before. What an operator types into a web server's
configuration takes no time here. DOCKER_HOST names the engine, SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers,
in a build folder of the sources).

  tests/bench/ways.py [--way NAME]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../e2e"), os.path.join(HERE, "../nginx")]

# pylint: disable=wrong-import-position
import clone  # noqa: E402
import debian_root  # noqa: E402
import existing  # noqa: E402
import groups_walk  # noqa: E402
import harness  # noqa: E402
import sites  # noqa: E402
import test_desktop  # noqa: E402
import test_other_servers as servers  # noqa: E402
from mcp import RUN_HEADERS, Client  # noqa: E402
from stdio import Stdio  # noqa: E402

PATIENCE_S = 120
NO_NETWORK = {"SANDBOX_NETWORK": "none"}
# Not what the tests' servers have of their own.
DEFAULTS = NO_NETWORK | dict.fromkeys(("SANDCGI_LOG_LEVEL", "SANDCGI_WORKERS", "SANDBOX_LIMITS_CHECK", "SANDBOX_WARM", "TOOLS"))
RUN = {"name": "run_code", "arguments": {"conversationId": "ways", "language": "bash", "code": "echo hello"}}


def seconds(start, make_client):
    """From the beginning of start() to the first answer that make_client()'s client gets."""
    begin = time.monotonic()
    start()
    client = sites.new_conversation(make_client())

    def answers():
        try:
            return client.run("echo hello", "bash")["stdout"] == "hello\n"
        except (OSError, harness.Failed):
            return False
    harness.wait_until(answers, PATIENCE_S, "the first answer", pause=0.02)
    return time.monotonic() - begin


def stdio():
    _, environment = test_desktop.new_home()
    begin = time.monotonic()
    one = Stdio(None, environment=environment | NO_NETWORK)
    one.initialize()
    harness.equal(one.result("tools/call", RUN, PATIENCE_S)["structuredContent"]["stdout"], "hello\n")
    return time.monotonic() - begin


def start_sh():
    house = clone.Clone()
    harness.at_test_end(house.start_sh, "--stop")

    def start():
        status, output = house.start_sh(environment=NO_NETWORK)
        harness.equal(status, 0, f"./start.sh: {output[-2000:]}")
    return seconds(start, house.client)


WALK = existing.WITH_ENGINE + r"""
run()
{
    [[ $(ask "http://127.0.0.1:$PORT/mcp/api" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H "$REVISION" \
        -H 'Accept: application/json, text/event-stream' -d "$CALL") == 200 ]] && grep -qF '"stdout":"hello\n"' "$W/answer"
}
begin=$EPOCHREALTIME
walk_in
for ((i = 0; i < 1000; i++)); do ! run || break; sleep 0.02; done
end=$EPOCHREALTIME
run || { cat "$W/answer" "$W/serve.log"; exit 1; }
echo "$begin $end"
"""


def existing_nginx():
    if not harness.IS_ROOT:
        raise harness.Skip("needs root")
    folder = harness.new_folder("walk")
    pathlib.Path(folder, "commands").write_text(groups_walk.documented_commands("existing nginx"), encoding="utf-8")
    done = groups_walk.in_machine(folder, WALK, existing.engine_environment(folder) | {
        "CALL": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": RUN}), "REVISION": ": ".join(*RUN_HEADERS.items())})
    harness.equal(done.returncode, 0, f"the way into an existing nginx: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    begin, end = map(float, done.stdout.split()[-2:])
    return end - begin


def other_server(start, settings=None):
    site = servers.new_site(**DEFAULTS | (settings or {}))
    return seconds(lambda: start(site), lambda: Client(f"http://localhost:{site.port}", site.token))


def debian():
    root = debian_root.bare()
    return seconds(debian_root.running, root.client)


def compose():
    raise harness.Skip('its images are built first, under names that an engine has once; "tests/run.sh --only compose" tells the time with the build')


# Name: what is done from the first command on, and how it is measured.
WAYS = {
    "stdio": ("`sandcgi stdio` in an empty home, initialize, run_code", stdio),
    "nginx": ("existing nginx: `sandcgi setup nginx`, `nginx -s reload`, `sandcgi serve`", existing_nginx),
    "apache-fastcgi": ("`sandcgi serve`, Apache with mod_proxy_fcgi", lambda: other_server(servers.start_apache_fastcgi)),
    "apache-cgi": ("Apache with a CGI program, without a server", lambda: other_server(servers.start_apache_cgi, servers.CGI)),
    "lighttpd": ("`sandcgi serve`, lighttpd with FastCGI", lambda: other_server(servers.start_lighttpd)),
    "debian": ("Debian package, its dependencies there: `apt-get install`, `sandcgi setup nginx`, both started", debian),
    "start.sh": ("`./start.sh` in a fresh clone, which compiles the program and makes the page", start_sh),
    "compose": ("`docker-compose up`", compose),
}


def measure(name):
    """Prints a row of the table."""
    what, way = WAYS[name]
    load = os.getloadavg()[0]
    try:
        found = f"{way():.2f} | {load:.1f} to {os.getloadavg()[0]:.1f}"
    except harness.Skip as reason:
        found = f"not measured here: {reason} |"
    finally:
        harness.end_test()
    print(f"| {name} | {what} | {found} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=WAYS, help="only this one")
    options = parser.parse_args()
    version = subprocess.run([sites.BINARY, "version"], check=True, capture_output=True, text=True).stdout.split("\n")[0]
    print(f"The engine, the runner images and the program ({version}) are there before. Programs have no network.\n"
          f"{os.cpu_count()} processors; load: the mean of a minute, before and after.\n")
    print("| way | from the first command to the answer of run_code | seconds | load |\n|---|---|---:|---:|", flush=True)
    try:
        for name in [options.way] if options.way else WAYS:
            measure(name)
    finally:
        harness.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

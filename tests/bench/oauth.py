#!/usr/bin/env python3
"""What an access token costs beside a static one: ping by `ab -k`, and print(1) by run_code in a warm container, turn by turn on one server
with the builtin authorization server. Prints rates, times and the ratio of each round's pair, and the processor time of the server's and
nginx's processes for a ping, which varies less on a busy machine. DOCKER_HOST names the engine,
SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers). Asserts nothing."""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "run_code"), os.path.join(HERE, "../e2e")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import oauth  # noqa: E402
import pool  # noqa: E402
import procs  # noqa: E402
from stack import VERSION, Caller, Target  # noqa: E402
from stats import Table, median  # noqa: E402
from work import PRINT  # noqa: E402

GOAL = 0.95
QUIET = {"SANDCGI_LOG_LEVEL": None, "SANDCGI_WORKERS": None}
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Side:
    def __init__(self, site, token):
        self.site = site
        self.headers = [f"Authorization: Bearer {token}", "Accept: application/json, text/event-stream", f"MCP-Protocol-Version: {VERSION}"]
        self.caller = Caller(Target(f"http://localhost:{site.http_port}/mcp/api", token))

    def pings(self, calls, lanes, body):
        """Calls a second, and microseconds of processor time for each."""
        before = procs.spent(self.site.process.pid, self.site.nginx_process.pid)
        command = ["ab", "-q", "-k", "-c", str(lanes), "-n", str(calls), "-p", body, "-T", "application/json"]
        for header in self.headers:
            command += ["-H", header]
        done = subprocess.run([*command, f"http://127.0.0.1:{self.site.http_port}/mcp"], check=False, capture_output=True, text=True)
        rate = re.search(r"Requests per second: +([0-9.]+)", done.stdout)
        if not rate or "Failed requests:        0\n" not in done.stdout or "Non-2xx" in done.stdout:
            raise harness.Failed(f"ab: {done.stdout}{done.stderr}")
        spent = procs.spent(self.site.process.pid, self.site.nginx_process.pid) - before
        return float(rate.group(1)), 1e6 * spent / calls

    def print_ms(self):
        pool.wait_for(self.site, 1, 60, language="python", tier="started", sandbox="")
        return self.caller.warm_up().run(PRINT)


def in_turn(sides, rounds, measure):
    """{name: values}; the first round only warms up."""
    values = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name in random.sample(list(sides), len(sides)):
            value = measure(sides[name])
            if turn:
                values[name].append(value)
    return values


def compare(title, values, digits, more_is_better):
    table = Table(title, "", "median", "lowest", "highest")
    for name, found in values.items():
        table.add(name, *(f"{value:.{digits}f}" for value in (median(found), min(found), max(found))))
    pairs = [access / static if more_is_better else static / access for static, access in zip(values["static token"], values["access token"])]
    table.add("access token ÷ static token" if more_is_better else "static token ÷ access token", *(f"{value:.3f}" for value in (median(pairs), min(pairs), max(pairs))))
    table.note(f"goal: {GOAL}")
    table.print(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of ping (%(default)s) …")
    parser.add_argument("--calls", type=int, default=5000, help="… of so many calls each (%(default)s) …")
    parser.add_argument("--lanes", type=int, default=4, help="… on so many connections (%(default)s)")
    parser.add_argument("--runs", type=int, default=40, help="runs of print(1) with each token (%(default)s)")
    options = parser.parse_args()
    if not shutil.which("ab"):
        parser.error("ab is missing: apt-get install apache2-utils")
    try:
        site = oauth.server(QUIET | {"SANDBOX_WARM": "python=2" if options.runs else ""}, nginx={"RATE": 1000000, "BURST": 1000000})
        client = oauth.OAuth(site)
        client.register()
        sides = {"static token": Side(site, site.token), "access token": Side(site, client.tokens(scope="run files network admin")["access_token"])}
        body = f"{site.folder}/ping.json"
        with open(body, "w", encoding="ascii") as file:
            file.write(PING)
        pings = in_turn(sides, options.rounds, lambda side: side.pings(options.calls, options.lanes, body))
        compare("ping, calls a second", {name: [rate for rate, _ in found] for name, found in pings.items()}, 0, True)
        compare("ping, microseconds of processor time", {name: [spent for _, spent in found] for name, found in pings.items()}, 1, False)
        if options.runs:
            compare("print(1) in a warm container, milliseconds", in_turn(sides, options.runs, Side.print_ms), 2, False)
    finally:
        harness.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

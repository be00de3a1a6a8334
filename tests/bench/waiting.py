#!/usr/bin/env python3
"""Short calls beside a crowd of waiting ones of 50 tenants: get_run, and run_code in the queue. Prints latencies, and the memory of a
waiting call. DOCKER_HOST names the engine, SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers)."""
import argparse
import contextlib
import json
import os
import resource
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "run_code"), os.path.join(HERE, "../e2e")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import procs  # noqa: E402
import sites  # noqa: E402
from stats import median, quantile  # noqa: E402

TENANTS = 50


def tenants(site):
    """Clients of 50 tenants, each with a run that takes the tenant's only place."""
    found = []
    for i in range(TENANTS):
        site.set_token(f"tenant{i}", f"{i:02}" * 24)
    for i in range(TENANTS):
        client = sites.new_conversation(site.plain_client().with_token(f"{i:02}" * 24))
        harness.wait_until(lambda client=client: client.http("POST", "/mcp", b"{}", client.headers()).status != 401, 10, "the tenant's token")
        run = client.run("sleep 600", "bash", background=True, timeout=600)["runId"]
        found.append((client, run))
    return found


def crowd(site, callers, begun, n, stack):
    """More calls that wait: n, with those begun before."""
    for i in range(begun, n):
        client, run = callers[i % TENANTS]
        connection = stack.enter_context(contextlib.closing(client.connect()))
        queued = i // TENANTS % 4 == 3
        what = {"language": "bash", "code": "true", "conversationId": client.conversation} if queued else {"runId": run}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                   "params": {"name": "run_code" if queued else "get_run", "arguments": what | {"waitMs": 600000}}}
        connection.request("POST", "/mcp", json.dumps(message), client.headers())
    harness.wait_until(lambda: len(site.busy_workers()) >= n, 60, "every call waits", 1)


def timed(function, rounds):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
        time.sleep(0.02)
    return seconds


def measure(site, client, url, rounds):
    def healthy():
        harness.equal(fresh.http("GET", "/healthz").status, 200)
        time.sleep(0.1)  # nginx allows ten each second

    fresh = site.plain_client()
    cases = {"/healthz": healthy,
             "/.sandcgi/check (a signed link)": lambda: harness.equal(fresh.http("GET", url).status, 200),
             "tools/list": lambda: client.result("tools/list"),
             "list_files": lambda: client.structured("list_files", {"conversationId": client.conversation}),
             "run_code print(1), warm": lambda: harness.equal(client.run("print(1)")["stdout"], "1\n")}
    for name, function in cases.items():
        seconds = timed(function, rounds)
        if function is healthy:
            seconds = [one - 0.1 for one in seconds]
        print(f"  {name:34} median {median(seconds) * 1000:7.1f} ms   p95 {quantile(seconds, 0.95) * 1000:7.1f} ms", flush=True)


def connect_cost(site, rounds=2000):
    """Seconds of CPU that a connection to the workers' socket costs the one who connects: the kernel looks for a worker meanwhile."""
    seconds = []
    for _ in range(rounds):
        with socket.socket(socket.AF_UNIX) as sock:
            start = time.thread_time()
            sock.connect(site.front)
            seconds.append(time.thread_time() - start)
        time.sleep(0.001)  # a worker sees its end
    return seconds


def available_kb():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowds", default="0,500,2000", help="numbers of waiting calls")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    site = None
    try:
        site = sites.own_of_suite({"SANDCGI_LOG_LEVEL": None, "SANDCGI_WORKERS": None, "SANDBOX_URL_TTL": "1h", "SANDBOX_WARM": "python=2",
                                   "SANDBOX_TIMEOUT_MAX": "1h", "SANDBOX_WAIT_MAX": "1h", "SANDBOX_TENANT_RUNS": "1",
                                   "SANDBOX_MAX_RUNS": str(TENANTS + 4), "SANDBOX_QUEUE": "2000"}, nginx={"CONNS": 2000})
        client = sites.new_conversation(site.plain_client())
        url = client.run("open('x', 'w').write('here')")["files"][0]["url"].replace(site.base_url, "")
        callers = tenants(site)
        with contextlib.ExitStack() as stack:
            waiting = 0
            for n in map(int, options.crowds.split(",")):
                before = available_kb()
                crowd(site, callers, waiting, n, stack)
                time.sleep(3)
                print(f"{n} calls wait:")
                if n > waiting:
                    busy = site.busy_workers()
                    print(f"  memory of a waiting call: {median([procs.private_memory(pid) for pid in busy]) / 1024:.0f} kB private, "
                          f"{(before - available_kb()) / (n - waiting):.0f} kB of the machine's")
                waiting = n
                seconds = connect_cost(site)
                print(f"  a connection: median {median(seconds) * 1e6:.0f} us of CPU   p95 {quantile(seconds, 0.95) * 1e6:.0f} us")
                measure(site, client, url, options.rounds)
    finally:
        for _ in range(2 if site else 0):  # the second ends what runs
            site.process.terminate()
            time.sleep(1)
        harness.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

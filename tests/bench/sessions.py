#!/usr/bin/env python3
"""What a new session costs beside others of its tenant: it looks at each of them when the tenant has its share. Prints latencies of
initialize. DOCKER_HOST names the engine, SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers)."""
import os
import secrets
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "run_code"), os.path.join(HERE, "../e2e")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import sites  # noqa: E402
from stats import median, quantile  # noqa: E402

ROUNDS = 50
PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def timed(client):
    start = time.perf_counter()
    answer = client.request("initialize", PARAMS)
    harness.check("Mcp-Session-Id" in answer.headers, answer.status)
    return time.perf_counter() - start


def fill(folder, n):
    """As many sessions more, all like the one that is there."""
    model = next(name for name in os.listdir(folder) if len(name) == 64)
    while len(os.listdir(folder)) < n:
        for _ in range(500):
            shutil.copy(f"{folder}/{model}", f"{folder}/{model[:32]}{secrets.token_hex(16)}")


def main():
    try:
        site = sites.own_of_suite({"SANDCGI_MAX_SESSIONS": "20000", "SANDBOX_WARM": ""})
        client = site.plain_client()
        timed(client)
        for n in (0, 1000, 4000, 16000):
            fill(f"{site.root}/.sessions", n)
            seconds = [timed(client) for _ in range(ROUNDS)]
            print(f"{len(os.listdir(f'{site.root}/.sessions')):6} sessions: median {median(seconds) * 1000:6.1f} ms   "
                  f"p95 {quantile(seconds, 0.95) * 1000:6.1f} ms", flush=True)
    finally:
        harness.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

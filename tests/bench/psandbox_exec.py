#!/usr/bin/env python3
"""The cost of a command in a persistent sandbox, beside the engine's own exec: by its REST API, and by its command line.

usage: stay_exec.py [ROUNDS]     the engine is DOCKER_HOST's (unix://…), the image sandcgi-runner-bash, the entry program
                                 $ENTRY or runners/common/entry in $builddir or beside the sources

The three take turns, so that they meet the same machine. Prints median and 95th percentile in milliseconds, then what the
container costs while nothing runs in it.
"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "runners"))
import psandboxes  # noqa: E402
from test_entry import ENTRY  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
IDLE_S = 10
NAME = f"bench-stay-{os.getpid()}"
COMMANDS = {"true": ["true"], "echo": ["sh", "-c", "echo hello"]}
SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class Engine(http.client.HTTPConnection):
    """The engine's API on a kept connection."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)

    def call(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        return self.getresponse().read()


def by_api(engine, argv):
    made = json.loads(engine.call("POST", f"/containers/{NAME}/exec", {"Cmd": argv, "AttachStdout": True, "AttachStderr": True}))
    engine.call("POST", f"/exec/{made['Id']}/start", {"Detach": False})
    engine.close()  # the engine ends it behind the output
    assert json.loads(engine.call("GET", f"/exec/{made['Id']}/json"))["ExitCode"] == 0


def by_command_line(argv):
    subprocess.run(["docker", "exec", NAME, *argv], check=True, capture_output=True)


def by_stay(stay, argv):
    assert stay.run(*argv).report["exitCode"] == 0


def timed(times, call, *arguments):
    began = time.perf_counter()
    call(*arguments)
    times.append((time.perf_counter() - began) * 1000)


def figures(times):
    return statistics.median(times), sorted(times)[int(len(times) * 0.95)]


def compare(stay, engine):
    for name, argv in COMMANDS.items():
        ours, api, line = [], [], []
        for _ in range(ROUNDS):
            timed(ours, by_stay, stay, argv)
            timed(api, by_api, engine, argv)
            timed(line, by_command_line, argv)
        base = figures(ours)
        for what, times in (("stay", ours), ("exec (API)", api), ("docker exec", line)):
            median, p95 = figures(times)
            print(f"{name:6} {what:12} median {median:7.2f} ms  p95 {p95:7.2f} ms  {median / base[0]:5.1f} times ours")


def idle(engine):
    def look():
        stats = json.loads(engine.call("GET", f"/containers/{NAME}/stats?stream=0&one-shot=1"))
        return stats["cpu_stats"]["cpu_usage"]["total_usage"], stats["memory_stats"]["usage"]

    time.sleep(1)
    before, _ = look()
    time.sleep(IDLE_S)
    after, memory = look()
    print(f"idle   {(after - before) / IDLE_S / 1e6:.3f} ms of processor time a second, {memory / 1024:.0f} KiB")


def main():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ENTRY, f"{folder}/entry")
        os.chmod(folder, 0o755)
        stay = psandboxes.Stay(["docker", "run", "--rm", "-i", "--name", NAME, "--network", "none", "--read-only", "--user", "1000:1000",
                           "--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=64m", "--cap-drop", "ALL", "--security-opt",
                           "no-new-privileges", "--memory", "256m", "--pids-limit", "128", "--log-driver", "none",
                           "-v", f"{folder}:/sandbox:ro", "--entrypoint", "/sandbox/entry", "sandcgi-runner-bash", "stay"])
        engine = Engine("engine")
        try:
            compare(stay, engine)
            idle(engine)
        finally:
            stay.close()


if __name__ == "__main__":
    main()

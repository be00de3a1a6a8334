#!/usr/bin/env python3
"""What each wall costs: run_code in a warm container, tools/list and a download, on two servers that differ by one wall, turn by turn.
A wall that no setting lowers is taken out of a scratch copy of the sources, and both servers are built of that copy. DOCKER_HOST names the
engine. Asserts nothing."""
import argparse
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/run_code", f"{HERE}/../e2e"]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import pool  # noqa: E402
import procs  # noqa: E402
import sites  # noqa: E402
from http1 import request  # noqa: E402
from rest import REST_S  # noqa: E402
from stack import Caller, Target, new_name  # noqa: E402
from stats import Table, median, quantile  # noqa: E402
from work import PRINT  # noqa: E402

GOAL = 0.97
MASTER, JSON = "fcgi/process/master.c", "common/rpc/json.c"


@dataclass(frozen=True)
class Wall:
    """without: (file, text, its replacement) in the sources; settings: of the server without; lines: texts whose lines nginx loses."""
    title: str
    without: tuple = ()
    settings: tuple = ()
    lines: tuple = ()


WALLS = {
    "none": Wall("nothing (the error of the measurement)"),
    "cages": Wall("Landlock and seccomp of the workers", ((MASTER, "account_confine(m->fds[FD_SESSIONS], hub, e) < 0", "false"),)),
    "memory": Wall("bounds of a worker's memory and of JSON values", (
        (MASTER, "front_memory_bound(m->settings, hub, e) < 0", "false"),
        (JSON, "if (++marks > JSON_MAX_VALUES)", "if (false)"))),
    "links": Wall("token in links (nginx's secure_link)", lines=("secure_link",)),
    "users": Wall("a user for each conversation", settings=(("SANDBOX_USER", "1000:1000"),)),
    "disk": Wall("quota, reserves and total, with their watcher", settings=tuple((name, "0") for name in (
        "SANDBOX_QUOTA", "SANDBOX_FILES", "SANDBOX_DISK_RESERVE", "SANDBOX_FILES_RESERVE", "SANDBOX_TOTAL_MAX"))),
}


class Sources:
    """A copy that is built with and without walls."""

    def __init__(self, folder):
        self.folder = folder
        self.top = f"{folder}/sources"
        print("building a scratch copy of the sources ...", flush=True)
        shutil.copytree(harness.TOP, self.top, symlinks=True, ignore=shutil.ignore_patterns(".git", "build", "autom4te.cache"))
        if not os.path.exists(f"{self.top}/configure"):
            self._run(self.top, "autoreconf", "-fi")
        os.makedirs(f"{self.top}/build", exist_ok=True)
        self._run(f"{self.top}/build", "../configure", "-q", "CFLAGS=-O2")
        self.whole = self.build("whole")

    @staticmethod
    def _run(folder, *command):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise harness.Failed(f"{' '.join(command)}: {done.stderr[-2000:]}")

    def build(self, name, without=()):
        kept = {path: _text(f"{self.top}/{path}") for path, _, _ in without}
        for path, text, other in without:
            now = kept[path]
            if text not in now:
                raise harness.Failed(f"{path} has no \"{text}\" any more: change WALLS")
            self._write(path, now.replace(text, other))
        self._run(f"{self.top}/build", "make", f"-j{os.cpu_count()}", "sandcgi")
        for path, text in kept.items():
            self._write(path, text)
        return shutil.copy(f"{self.top}/build/sandcgi", f"{self.folder}/sandcgi-{name}")

    def _write(self, path, text):
        with open(f"{self.top}/{path}", "w", encoding="utf-8") as file:
            file.write(text)


def _text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Side:
    """A server, and one call of each kind. Each returns its seconds."""

    def __init__(self, binary, wall=None):
        self.site = sites.Site({"SANDCGI_WORKERS": None, "SANDCGI_LOG_LEVEL": None, "SANDBOX_WARM": "python=2"} | dict(wall.settings if wall else ()),
                               binary=binary).start()
        for text in wall.lines if wall else ():
            self._lose_lines(text)
        self.caller = Caller(Target(f"http://localhost:{self.site.http_port}/mcp/api", self.site.token)).warm_up()
        uploaded = self.caller.tool("upload_file", {"conversationId": new_name(), "filename": "file", "content": "x" * 10240})
        self.file = uploaded["file"]["url"].replace(self.site.base_url, "")

    def _lose_lines(self, text):
        for path in glob.glob(f"{self.site.folder}/conf/*.conf"):
            lines = _text(path).splitlines(keepends=True)
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(line for line in lines if text not in line)
        os.kill(self.site.nginx_process.pid, signal.SIGHUP)
        time.sleep(1)

    def _call(self, message):
        start = time.perf_counter()
        status, _, body = self.caller.connect().call(message)
        took = time.perf_counter() - start
        if status != 200:
            raise harness.Failed(f"status {status}: {body[:300]!r}")
        return took

    def run_code(self):
        pool.wait_for(self.site, 1, 60, language="python", tier="started", sandbox="")
        time.sleep(REST_S)
        return self.caller.run(PRINT) / 1000

    def tools_list(self):
        return self._call(self.caller.request("tools/list", {}))

    def download(self):
        return self._call(request("GET", self.file))

    def spent(self):
        """Seconds of processor time of the server's and nginx's processes, without the engine and its containers."""
        return procs.spent(self.site.process.pid, self.site.nginx_process.pid)

    def stop(self):
        self.caller.close()
        self.site.stop()


def measure(sides, what, rounds, calls):
    """{side: seconds of each call} and {side: processor time of a call in each round}; the first round only warms up."""
    seconds, spent = {name: [] for name in sides}, {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name in random.sample(list(sides), len(sides)):
            side = sides[name]
            side.caller.close()  # nginx ends a connection after some requests
            side.caller.warm_up()
            before = side.spent()
            took = [getattr(side, what)() for _ in range(calls)]
            if turn:
                seconds[name] += took
                spent[name].append((side.spent() - before) / calls)
    return seconds, spent


def compare(wall, sides, options):
    table = Table(f"{wall.title}: milliseconds of a call", "", "with: median", "p95", "without: median", "p95", "without ÷ with",
                  "processor: with", "without", "without ÷ with")
    for what, rounds, calls in (("run_code", options.runs, 1), ("tools_list", options.rounds, 50), ("download", options.rounds, 50)):
        seconds, spent = measure(sides, what, rounds, calls)
        row = [what]
        for name in sides:
            row += [f"{1000 * median(seconds[name]):.3f}", f"{1000 * quantile(seconds[name], 0.95):.3f}"]
        row.append(f"{median(seconds['without']) / median(seconds['with']):.3f}")
        row += [f"{1000 * median(spent[name]):.3f}" for name in sides]
        row.append(f"{median(spent['without']) / median(spent['with']):.3f}")
        table.add(*row)
    table.note(f"goal: {GOAL}")
    table.print(options.markdown)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wall", choices=WALLS, action="append", help="only this wall (may be given several times)")
    parser.add_argument("--runs", type=int, default=30, help="runs on each server (%(default)s)")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of 50 short calls on each server (%(default)s)")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    try:
        sources = Sources(harness.new_folder("walls"))
        for name in options.wall or WALLS:
            wall = WALLS[name]
            binary = sources.build(name, wall.without) if wall.without else sources.whole
            sides = {"with": Side(sources.whole), "without": Side(binary, wall)}  # both are new: a server that has served keeps containers
            compare(wall, sides, options)
            for side in sides.values():
                side.stop()
    finally:
        harness.close()


if __name__ == "__main__":
    main()

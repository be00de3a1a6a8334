#!/usr/bin/env python3
"""The end-to-end suite. DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to test (default: build/sandcgi).

Several processes take module after module. Tests that nothing may run beside come last, one by one.
"""
import argparse
import collections
import importlib
import os
import queue
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import harness  # noqa: E402  pylint: disable=wrong-import-position
import logs  # noqa: E402  pylint: disable=wrong-import-position
import sites  # noqa: E402  pylint: disable=wrong-import-position

# The longest first, so that the processes end together.
MODULES = (
    "start",
    "podman",
    "survivors",
    "reuse",
    "warm",
    "hostile",
    "debian",
    "sandboxes",
    "store",
    "packages",
    "retention",
    "oauth",
    "crash",
    "update",
    "operators",
    "runs",
    "hostile_tree",
    "tools",
    "links",
    "crowds",
    "file_tools",
    "first_tries",
    "network",
    "file_urls",
    "profiles",
    "archives",
    "disk",
    "long_runs",
    "pictures",
    "frontends",
    "extras",
    "tunnel",
    "monitoring",
    "other_servers",
    "backup",
    "protocol",
    "sessions",
    "streams",
    "listening",
    "resources",
    "stdio",
    "desktop",
    "answers",
    "uploads",
    "environment",
    "foreign_accounts",
    "users",
    "versions",
    "existing",
    "surroundings",
    "engine",
    "soak",
    "toolsets",
    "tenants",
    "audit",
    "prove",
    "local",
    "memory",
)
# That need an engine of their own: the stage compose.
OWN_ENGINE = ("compose",)
MODULE_ENDED = "-- end of module"


def explain():
    """The end of the log of the server that was used last."""
    if not sites.all_sites:
        return ""
    site = sites.all_sites[-1]
    try:
        return "log of " + site.folder + ":\n" + "\n".join(site.log().splitlines()[-15:])
    except OSError:
        return ""


# ---- choosing ----

class Choice:
    """words: sentences, modules or parts of sentences, none: all."""

    def __init__(self, words, core, sentences):
        self.words, self.core, self.sentences = words, core, sentences

    def tests(self, module, alone):
        importlib.import_module(f"test_{module}")
        return [one for one in harness.selected(None) if one.module == f"test_{module}" and bool(one.alone) == alone and self.takes(one)]

    def takes(self, one):
        if self.sentences is not None and one.sentence not in self.sentences:
            return False
        return (one.core or not self.core) and (not self.words or any(one.matches(word) for word in self.words))


# ---- one process ----

def work(choice, alone):
    """Runs the modules whose names come on standard input, a line each, and says when each has ended."""
    harness.take_signals()
    counts = collections.Counter()
    try:
        for line in sys.stdin:
            module = line.strip()
            tests = choice.tests(module, alone)
            if tests:
                harness.run_module(tests, explain, counts)
                harness.run_module([harness.Test("the logs of the servers hold no secret, and nothing crashed", 60, True, None, logs.look)],
                                   explain, counts)
            print(MODULE_ENDED, flush=True)
    finally:
        harness.close()


# ---- all of them ----

class Printer:
    """Prints a test's lines together, and counts. stops: the first failure ends all."""

    def __init__(self, stops):
        self.stops = stops
        self.ended = 0  # else the status for a signal
        self.lock = threading.Lock()
        self.counts = collections.Counter()

    def put(self, module, lines):
        """lines: the first tells the state and the sentence, the others why."""
        state, _, rest = lines[0].partition(" ")
        if state not in ("ok", "FAILED", "skipped", "unsteady"):
            return
        with self.lock:
            self.counts[state] += 1
            print(f"{state} {module}: {rest}", *lines[1:], sep="", end="", flush=True)
        if self.stops and state == "FAILED":
            os.kill(os.getpid(), signal.SIGTERM)


class Worker(threading.Thread):
    """A process that takes module after module from the queue; one that ends early is replaced."""

    def __init__(self, modules, arguments, printer):
        super().__init__()
        self.modules, self.arguments, self.printer = modules, arguments, printer
        self.process = None
        self.start()

    def begin(self):
        self.process = subprocess.Popen([sys.executable, "-u", os.path.abspath(__file__), "--worker", *self.arguments], text=True, errors="replace",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self):
        while True:
            try:
                module = self.modules.get_nowait()
            except queue.Empty:
                break
            if not self.process:
                self.begin()
            if self.printer.ended:
                break
            if not self.run_module(module) and not self.printer.ended:
                self.printer.put(module, [f"FAILED the process of its tests ended with {self.process.wait()}\n"])
                self.process = None
        if self.process:
            if self.printer.ended:
                self.process.terminate()
            self.process.stdin.close()
            for _line in self.process.stdout:
                pass
            self.process.wait()

    def run_module(self, module):
        """False when the process has ended meanwhile."""
        block = []
        try:
            self.process.stdin.write(module + "\n")
            self.process.stdin.flush()
        except OSError:
            return False
        for line in self.process.stdout:
            if line.startswith("    ") and block:
                block.append(line)
                continue
            if block:
                self.printer.put(module, block)
            block = [line]
            if line.startswith(MODULE_ENDED):
                return True
            if line.startswith(("ok ", "skipped ")):
                self.printer.put(module, block)
                block = []
        if block:
            self.printer.put(module, block)
        return False


def run_all(modules, jobs, arguments, printer):
    waiting = queue.SimpleQueue()
    for module in modules:
        waiting.put(module)
    workers = [Worker(waiting, arguments, printer) for _ in range(min(jobs, len(modules)))]

    def end(number, _frame):
        """Their processes end, then the threads. (A join() in here could wait for the one that this has interrupted.)"""
        printer.ended = 128 + number
        while not waiting.empty():
            waiting.get_nowait()
        for one in workers:
            if one.process:
                one.process.terminate()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    for one in workers:
        one.join()
    if printer.ended:
        sys.exit(printer.ended)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="tests whose module is NAME or whose sentence contains it")
    parser.add_argument("--sentences", metavar="FILE", help="only tests whose sentences are lines of FILE")
    parser.add_argument("--core", action="store_true", help="only the tests of the run without options")
    parser.add_argument("--which", choices=("beside", "alone", "both", "own-engine"), default="both",
                        help="tests that others may run beside, the others, both, or those of the stage compose")
    parser.add_argument("--jobs", type=int, default=2, help="so many modules at a time (2)")
    parser.add_argument("--stop", action="store_true", help="end at the first failure")
    parser.add_argument("--list", action="store_true", help="name the tests")
    parser.add_argument("--worker", choices=("beside", "alone"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    sentences = None
    if options.sentences:
        with open(options.sentences, encoding="utf-8") as file:
            sentences = set(file.read().splitlines())
    choice = Choice(options.only, options.core, sentences)
    if options.worker:
        return work(choice, options.worker == "alone")
    parts = [(alone, [module for module in (OWN_ENGINE if options.which == "own-engine" else MODULES) if choice.tests(module, alone)])
             for alone in (False, True) if options.which in ("both", "own-engine", "alone" if alone else "beside")]
    if options.list:
        for alone, modules in parts:
            for module in modules:
                for one in choice.tests(module, alone):
                    print(f"{module}: {one.sentence}{' (alone: ' + one.alone + ')' if alone else ''}")
        return 0
    printer = Printer(options.stop)
    arguments = [word for name in options.only for word in ("--only", name)]
    arguments += ["--sentences", options.sentences] if options.sentences else []
    arguments += ["--core"] if options.core else []
    for alone, modules in parts:
        if not modules:
            continue
        run_all(modules, 1 if alone else options.jobs, ["alone" if alone else "beside", *arguments], printer)
    counts = printer.counts
    if not counts:
        print(f"FAILED no test matches {' or '.join(options.only)}; see --list")
        counts["FAILED"] = 1
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

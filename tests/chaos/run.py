#!/usr/bin/env python3
"""Everything of the server is killed, stopped and starved at random while clients check every answer.

DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to test (default: build/sandcgi). Needs root: the sandboxes are
on a small file system of their own. The engine is killed and frozen only when it is the tests' own.
"""
import argparse
import collections
import contextlib
import os
import random
import resource
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), name) for name in ("e2e", "lib")]

# pylint: disable=wrong-import-position
import acts  # noqa: E402
import callers  # noqa: E402
import engine  # noqa: E402
import harness  # noqa: E402
import pool  # noqa: E402
import procs  # noqa: E402
import sites  # noqa: E402
from results import Results  # noqa: E402

TENANTS = 3
CALLERS = 6
DISK = "600m"
LATE = 30  # seconds after which an answer that has not come again is a failure; the goals are in acts.py, and only printed
WARM = "python=2,typescript=1,bash=1"


class Report(Results):
    def tell(self, sentence, problems):
        self.line("FAILED" if problems else "ok", sentence, problems[:20])


def clock_library():
    """The preloaded library that sets the server's clock back."""
    library = f"{harness.new_folder('clock')}/clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, f"{HERE}/clock.c"], check=True)
    return library


def make_site():
    """A server whose SANDBOX_ROOT is a file system of its own."""
    site = sites.Site({"SANDBOX_WARM": WARM, "SANDCGI_LOG_LEVEL": "info", "SANDBOX_RESULT_TTL": "60s", "SANDBOX_QUOTA": "64m"})
    harness.at_end(lambda: subprocess.run(["umount", "-l", site.root], check=False, capture_output=True))
    harness.at_end(site.stop)
    options = f"size={DISK},mode={os.stat(site.root).st_mode & 0o7777:o}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", site.root], check=True)
    site.environment = {"LD_PRELOAD": clock_library(), "CHAOS_CLOCK": f"{site.folder}/clock",
                        "ASAN_OPTIONS": sites.SANITIZER_ENV["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}
    return site


def strike(stage, act, goal, ledger):
    """One act; the time to the next right answer, as a text, and whether it came at all."""
    ledger.act = act.__name__
    ledger.engine_away.append(goal == acts.ENGINE or act.__name__.startswith("limit"))  # a limit may keep the broker from it
    try:
        act(stage)
    except harness.Skip as reason:
        return f"skipped: {reason}", True
    over = time.monotonic()
    if acts.wait_done(over, LATE * harness.PATIENCE, lambda: ledger.first_right_after(over) is not None) is None:
        return "no right answer came", False
    right = ledger.first_right_after(over)
    return f"{right:.2f} s{'' if right <= goal else f' (goal {goal})'}", True


def rounds(stage, seconds, ledger, times):
    """Acts in random order, each once before one comes again, until the time is over and each has been. The failures."""
    end = time.monotonic() + seconds
    failures, first = [], True
    while first or time.monotonic() < end:
        order = list(acts.ACTS)
        stage.chance.shuffle(order)
        for act, goal in order:
            if not first and time.monotonic() >= end:
                break
            text, well = strike(stage, act, goal, ledger)
            times[act.__name__].append(text)
            if not well:
                failures.append(f"{act.__name__}: {text}")
            time.sleep(stage.chance.uniform(0.2, 1.5))
        first = False
    return failures


def compare_files(crowd):
    """Every file that a caller was told to be there is there, and is what it was."""
    lost = []
    for one in crowd:
        for name, (content, _url) in one.files.items():
            for attempt in range(3):
                try:
                    found = one.tool("read_file", filename=name).get("content")
                    if found != content:
                        lost.append(f"{one.client.conversation}/{name}: {found!r}, want {content!r}")
                    break
                except Exception as problem:  # pylint: disable=broad-except
                    if attempt == 2:
                        lost.append(f"{one.client.conversation}/{name}: {problem!r}")
                    time.sleep(1)
    return lost


def left_over(site):
    """What is there besides the usual: containers, entries of the tree's own directories."""
    def found():
        most = len(pool.unclaimed(site)) + CALLERS  # each caller has a session
        n = len(site.all_containers())
        left = [f"{n} containers instead of at most {most}"] if n > most else []
        for name in (".staging", ".uploads", ".trash"):
            if os.path.isdir(f"{site.root}/{name}") and os.listdir(f"{site.root}/{name}"):
                left.append(f"{name}: {len(os.listdir(f'{site.root}/{name}'))} entries")
        return left
    end = time.monotonic() + 90
    while (left := found()) and time.monotonic() < end:
        time.sleep(1)
    return left


def processes_of(site):
    """All that were started with the site's settings, wherever they hang in the tree."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and procs.exists(int(name)):
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"CHAOS_CLOCK={site.folder}/clock".encode() in file.read().split(b"\0"):
                        found.append(int(name))
    return found


def sizes(site):
    """Descriptors of the processes that last."""
    return {"broker": len(procs.open_files(site.broker() or 0)), "hub": len(procs.open_files(site.hub_process() or 0)),
            "worker": max((len(procs.open_files(pid)) for pid in site.workers()), default=0)}


def grown(site, before):
    """Descriptors above those of the start, once calls and warm containers have settled."""
    slack = {"broker": 40, "hub": 4, "worker": 3}
    end = time.monotonic() + 60
    while True:
        now = sizes(site)
        left = [f"{name}: {before[name]} descriptors, then {now[name]}" for name in now if now[name] > before[name] + slack[name]]
        if not left or time.monotonic() > end:
            return left
        time.sleep(1)


def chaos(seconds, seed, report):
    print(f"seed {seed}; {seconds} s of {len(acts.ACTS)} kinds of acts, {CALLERS} callers of {TENANTS} tenants", flush=True)
    site = make_site()
    stage = acts.Stage(site, random.Random(seed), long=seconds >= 300)
    tokens = [site.token] + [f"{n}" * 48 for n in range(1, TENANTS)]
    for n, token in enumerate(tokens[1:]):
        site.set_token(f"tenant{n}", token)
    site.start()
    pool.wait_for(site, n=2)
    ledger, times = callers.Ledger(), collections.defaultdict(list)
    crowd = [callers.Caller(site, tokens[n % TENANTS], seed + n, ledger) for n in range(CALLERS)]
    before = sizes(site)
    for one in crowd:
        one.start()
    failures = rounds(stage, seconds, ledger, times)
    for one in crowd:
        one.over.set()
    for one in crowd:
        one.join(180)
    site.wait_healthy()
    print(f"{len(ledger.right)} right, {sum(ledger.refused.values())} refused, {len(ledger.wrong)} wrong; slowest {ledger.slowest:.1f} s")
    for text, n in ledger.refused.most_common(25):
        print(f"  {n:5} {text}")
    for name, texts in times.items():
        print(f"  right again after {name}: {', '.join(texts)}")
    report.tell("every answer is right or an honest refusal", ledger.wrong)
    report.tell("right answers come again after each act", failures)
    report.tell("no caller hangs", [one.name for one in crowd if one.is_alive()])
    report.tell("every file that was told to be written is there", compare_files(crowd))
    report.tell("no container and no entry of a work directory is left", left_over(site))
    report.tell("no descriptor is left", grown(site, before))
    site.stop()
    wait = acts.wait_done(time.monotonic(), 60, lambda: not processes_of(site))
    report.tell("every process has ended with the server", [] if wait is not None else [f"left: {processes_of(site)}"])
    if report.counts["FAILED"]:
        print("\n".join(site.log().splitlines()[-40:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped chaos: root is needed for a file system that may be filled")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, max(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    report = Report()
    if not engine.is_ours():
        print("the engine is not the tests' own: it is neither killed nor frozen")
    try:
        chaos(options.seconds, options.seed, report)
    finally:
        harness.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())

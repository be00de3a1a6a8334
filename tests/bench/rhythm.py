#!/usr/bin/env python3
"""What users feel at their rhythm: run_code with pauses between the calls, of one person and of many, beside the bare interpreter in the
same root file system and docker exec. Prints figures beside their goals; asserts nothing. Needs root, an engine (DOCKER_HOST) and an
ordinary build (SANDCGI_TEST_BINARY)."""
import argparse
import itertools
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/run_code", f"{HERE}/../e2e"]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import pool  # noqa: E402
import rest  # noqa: E402
import sites  # noqa: E402
from bare import Bare, Exec  # noqa: E402
from loads import Loop, at_once  # noqa: E402
from servers import WARM, Server, World  # noqa: E402
from stack import Caller, new_name  # noqa: E402
from stats import Table, median, number, quantile  # noqa: E402
from work import BUN, PANDAS, PRINT, SAVEFIG, WORKS  # noqa: E402

WAITS_FOR = "Waits before each part until the warm containers of each server are there. People of 16 and 32 begin new conversations."
BLOCK = 5          # calls of one way in a row; the one before them is not counted
READY_S = 90
LATE_S = 5
SETTLE_S = 2       # after a block; what the calls have caused is then done, and counts
IDLE_S = 4
THINK_S = 5        # between two calls of one person
MIX = 4 * [PRINT] + 4 * [PANDAS] + 2 * [SAVEFIG] + 2 * [BUN]
LOOP_CALLERS = 8
LOOP_GOAL = 60     # runs a second
CPU_GOALS = {PRINT: 25, PANDAS: 60, BUN: 70}  # ms of the machine's processors for a run that follows another
GOALS = {"one, 1 s between calls": {PRINT: 0.5, PANDAS: 0.08, SAVEFIG: 0.3, BUN: 0.7},
         "one, back to back": {PRINT: 0.7, PANDAS: 0.15, BUN: 1.1},
         "16 people": {PRINT: 0.7, PANDAS: 0.12, SAVEFIG: 0.4, BUN: 1},
         "32 people": {PANDAS: 0.3}}
P95_GOALS = {("16 people", PANDAS): 0.8}  # x bare's median in the crowd


def busy():
    """Seconds of processor time of the whole machine since its start."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Ways:
    """The ways to run a program, by title; each returns milliseconds."""

    def __init__(self, options):
        self.world = World()
        self.servers = {"run_code": Server(WARM)}
        if options.other:
            self.servers["run_code, " + " ".join(options.other)] = Server(WARM | dict(one.split("=", 1) for one in options.other), binary=options.other_binary)
        languages = {work.language: work for work in options.works}
        self.bare = {language: Bare(language, self.world.folder) for language in languages}
        self.exec = {language: Exec(self.world.client, work, f"{self.world.folder}/exec-{language}") for language, work in languages.items()}
        self.table = {"bare interpreter": lambda work: self.bare[work.language].run(work),
                      "docker exec": lambda work: self.exec[work.language].run(work)}
        for title, server in self.servers.items():
            self.table[title] = self._conversation(server)
        self.idle = 0.0
        self.late = False  # the libraries were not loaded in time, since the machine is not idle

    @staticmethod
    def _conversation(server):
        caller, names = server.caller(), {}
        return lambda work: caller.warm_up().run(work, names.setdefault(work.language, new_name()))

    def wait(self, works):
        """Until the warm containers are there; then measures what the idle machine does (seconds a second)."""
        for server in self.servers.values():
            loaded = {work.language for work in works if work.tier == "preloaded"}
            try:
                pool.wait_for_all(server.site, LATE_S if self.late else READY_S, loaded)
            except harness.Failed as late:  # libraries are loaded on an idle machine only
                self.late = True
                print(f"  ({late})")
        before = busy()
        time.sleep(IDLE_S)
        self.idle = (busy() - before) / IDLE_S

    def print_waiting(self):
        for title, server in self.servers.items():
            rows = sorted((one["image"], one["tier"], f"{one['memoryBytes'] / 1e6:.0f} MB") for one in pool.waiting(server.site))
            print(f"{title}: " + ", ".join(f"{len(list(same))} x {' '.join(row)}" for row, same in itertools.groupby(rows)) + " wait")
        print(f"the machine at rest: {self.idle:.2f} processors busy\n", flush=True)

    def close(self):
        for one in (*self.bare.values(), *self.exec.values()):
            one.close()


def ratio(values, base, goal=None):
    text = f"{values / base:.2f}" if values and base else "–"
    return f"{text} (goal {goal})" if goal else text


def one_person(ways, options, title, pause):
    ways.wait(options.works)
    for work in options.works:
        samples, cpu = {way: [] for way in ways.table}, {way: [] for way in ways.table}
        for _ in range(options.blocks):
            for way in random.sample(list(ways.table), len(ways.table)):
                ways.table[way](work)
                time.sleep(SETTLE_S)
                start, before = time.monotonic(), busy()
                for _ in range(BLOCK):
                    time.sleep(pause)
                    samples[way].append(ways.table[way](work))
                time.sleep(SETTLE_S)
                cpu[way].append(1000 * (busy() - before - ways.idle * (time.monotonic() - start)) / BLOCK)
        table = Table(f"{title}: {work.name}, milliseconds of {options.blocks * BLOCK} calls", "", "median", "p95", "x bare", "processor ms of the machine")
        base = median(samples["bare interpreter"])
        for way, values in samples.items():
            ours = way in ways.servers
            goal = CPU_GOALS.get(work) if ours else None
            table.add(way, number(median(values)), number(quantile(values, 0.95)), ratio(median(values), base, GOALS[title].get(work) if ours else None),
                      number(median(cpu[way])) + (f" (goal {goal})" if goal else ""))
        table.print(options.markdown)


def person(server, until, samples, errors):
    """One conversation: a call, a pause, a call, ..."""
    caller, name = Caller(server.target), new_name()
    time.sleep(random.uniform(0, THINK_S))
    while time.monotonic() < until:
        work = random.choice(MIX)
        try:
            samples[work].append(caller.run(work, name))
        except (OSError, RuntimeError) as problem:
            errors.append(problem)
            caller.close()
        time.sleep(THINK_S)
    caller.close()


def bare_beside(ways, until, samples):
    """The bare interpreter in the crowd, so that both have the same machine: each program once in the time between two calls of a person."""
    for work in itertools.cycle(WORKS):
        time.sleep(THINK_S / len(WORKS))
        if time.monotonic() >= until:
            return
        samples[work].append(ways.bare[work.language].run(work))


def people(ways, options, title, n):
    ways.wait(WORKS)
    alone = {work: median([ways.bare[work.language].run(work) for _ in range(BLOCK)]) for work in WORKS}
    table = Table(f"{title}, {THINK_S} s between calls, {options.seconds} s: milliseconds", "", "program", "calls", "median", "p95", "bare in the crowd",
                  "median x bare", "p95 x bare's median", "median x bare alone")
    for way in random.sample(list(ways.servers), len(ways.servers)):
        samples, crowd, errors = {work: [] for work in WORKS}, {work: [] for work in WORKS}, []
        until, before = time.monotonic() + options.seconds, busy()
        at_once([lambda way=way, until=until, samples=samples, errors=errors: person(ways.servers[way], until, samples, errors)] * n
                + [lambda until=until, crowd=crowd: bare_beside(ways, until, crowd)])
        spent, runs = busy() - before - ways.idle * (options.seconds + THINK_S), sum(map(len, samples.values()))
        for work, values in samples.items():
            p95, base = quantile(values, 0.95), median(crowd[work])
            table.add(way, work.name, len(values), number(median(values)), number(p95), number(base), ratio(median(values), base, GOALS[title].get(work)),
                      ratio(p95, base, P95_GOALS.get((title, work))), ratio(median(values), alone[work]))
        table.note(f"{way}: {len(errors)} errors{': ' + str(errors[0])[:150] if errors else ''}; {1000 * spent / max(runs, 1):.0f} ms of the machine's "
                   "processors for a run, with the bare ones beside and the next containers")
        ways.wait([PRINT])
    table.note("bare alone: " + ", ".join(f"{work.name} {number(value)} ms" for work, value in alone.items()))
    table.print(options.markdown)


def loop(ways, options, title):
    ways.wait([PRINT])
    table = Table(f"{title}: {PRINT.name} in {LOOP_CALLERS} conversations", "", "runs/s", "median ms", "p95 ms", "errors", "processor ms of the machine")
    for way, server in ways.servers.items():
        lanes = [(server.caller(), new_name()) for _ in range(LOOP_CALLERS)]
        closed, before = Loop(options.loop), busy()
        rate = closed.run([lambda lane=lane: lane[0].run(PRINT, lane[1]) for lane in lanes])
        spent = busy() - before - ways.idle * options.loop
        table.add(way, number(rate), number(median(closed.times)), number(quantile(closed.times, 0.95)), len(closed.errors),
                  number(1000 * spent / max(len(closed.times), 1)))
        for caller, _ in lanes:
            caller.close()
    table.note(f"goal: >= {LOOP_GOAL} runs/s")
    table.print(options.markdown)


PARTS = {"one": lambda ways, options: one_person(ways, options, "one, 1 s between calls", 1),
         "close": lambda ways, options: one_person(ways, options, "one, back to back", 0),
         "16": lambda ways, options: people(ways, options, "16 people", 16),
         "32": lambda ways, options: people(ways, options, "32 people", 32),
         "loop": lambda ways, options: loop(ways, options, "closed loop")}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (may be given several times)")
    parser.add_argument("--work", choices=[work.key for work in WORKS], action="append", help="one person runs only this (several times)")
    parser.add_argument("--blocks", type=int, default=4, help=f"blocks of {BLOCK} calls for each way and program (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="length of the parts with many people (%(default)s)")
    parser.add_argument("--loop", type=int, default=10, help="seconds of the closed loop (%(default)s)")
    parser.add_argument("--other", metavar="SETTING=VALUE", action="append", default=[], help="measures a second server with this setting (several times)")
    parser.add_argument("--other-binary", metavar="FILE", default=sites.BINARY, help="which is of this build (with SANDBOX_IMAGES=PATTERN for images of its own)")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.parts = options.part or list(PARTS)
    options.works = [work for work in WORKS if not options.work or work.key in options.work or {"16", "32"} & set(options.parts)]
    return options


def main():
    options = parse()
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, lambda got, _: sys.exit(128 + got))
    print(WAITS_FOR, f"\nload before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    ways = None
    try:
        ways = Ways(options)
        ways.wait(options.works)
        ways.print_waiting()
        for part in options.parts:
            PARTS[part](ways, options)
    finally:
        if ways:
            ways.close()
        harness.close()
        rest.sweep()


if __name__ == "__main__":
    main()

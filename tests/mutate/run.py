#!/usr/bin/env python3
"""Makes faults in lines at random, one at a time, and tells which of them no test notices: tests/mutate.sh --help."""
import argparse
import collections
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position
import candidates  # noqa: E402
import reach  # noqa: E402
import scratch as scratch_module  # noqa: E402
from scratch import Scratch, Trouble, read  # noqa: E402

WANTED = 80  # of a hundred faults
SECONDS = 1800  # of a test that is not known yet
COMPILER = "compiler warning"
SURVIVED = "SURVIVED"


# ---- choosing ----

def choose(seed, lines=None):
    """Yields (number, fault) without end of lines: each line of the tree is as likely as another, then each kind that it can have."""
    lines = scratch_module.mutable() if lines is None else lines
    order = list(lines)
    chance = random.Random(seed)
    chance.shuffle(order)
    for number, place in enumerate(order, 1):
        kinds = collections.defaultdict(list)
        for fault in lines[place]:
            kinds[fault.kind].append(fault)
        yield number, chance.choice(kinds[chance.choice(sorted(kinds))])


def with_fault(text, fault):
    lines = text.split("\n")
    lines[fault.number - 1] = fault.after
    return "\n".join(lines)


def diff(fault):
    """As a patch that "patch -p1" takes."""
    lines = read(f"{scratch_module.TOP}/{fault.path}").split("\n")
    at = fault.number - 1
    before, after = lines[max(0, at - 2):at], lines[at + 1:at + 3]
    n = len(before) + 1 + len(after)
    shown = [f" {line}" for line in before] + [f"-{fault.before}", f"+{fault.after}"] + [f" {line}" for line in after]
    return "\n".join([f"--- a/{fault.path}", f"+++ b/{fault.path}", f"@@ -{max(1, at - 1)},{n} +{max(1, at - 1)},{n} @@", *shown, ""])


# ---- one fault ----

class Verdict:
    def __init__(self, step, by, seconds):
        self.step, self.by, self.seconds = step, by, seconds


class Bench:
    """Tries faults in the scratch copy."""

    def __init__(self, scratch, steps):
        self.scratch, self.steps = scratch, {step for one in steps for step in candidates.STEPS[one]}
        self.reach = reach.Reach(scratch, self.execute)
        self.tests = candidates.Tests(scratch, self.reach)
        self.reach.measure([test for test in self.tests.all() if test.step in self.steps])
        self.flags = scratch.variable("DEFS") + ["-I.", "-I.."] + scratch.variable("libfront_a_CPPFLAGS")

    def attempt(self, fault):
        """A verdict; None: it is none of this language, or changes nothing."""
        path = f"{self.scratch.tree}/{fault.path}"
        original = read(path)
        start = time.monotonic()
        before = candidates.compiled(self.scratch, self.flags, fault.path)
        self.builds(fault)  # which lines begin a block is read from its object
        could_see = list(self.tests.for_fault(fault))
        try:
            put(path, with_fault(original, fault))
            after = candidates.compiled(self.scratch, self.flags, fault.path)
            if after is None or after == before:
                return None
            step, by = self.notice(fault, could_see)
            return Verdict(step, by, time.monotonic() - start)
        finally:
            put(path, original)

    def notice(self, fault, could_see):
        """(step, name) of the first that notices it."""
        if not self.builds(fault).ok:
            return COMPILER, "a warning, or a program that does not link"
        for test in could_see:
            why, test = self.fails(test)
            if why:
                return test.step, f"{test.name}: {why}" if test.name not in why else why
        return SURVIVED, ("only the tests of images could see it" if candidates.needs_image(fault.path) else
                          "" if could_see else "no test executes it")

    def builds(self, fault):
        objects = candidates.objects_of(self.scratch.build, fault.path) if fault.path.endswith(".c") else []
        return self.scratch.make(*(os.path.relpath(one, self.scratch.build) for one in objects)) if objects else self.scratch.make("all")

    def fails(self, test):
        """(how, the test that fails), at two attempts; "": it passes."""
        for _ in range(2):
            done = self.execute(test)
            if done.ok:
                return "", test
            if done.late:
                return f"no end within {done.seconds:.0f} s", test
            test = test.narrowed(done.text)
        return first_failure(done.text), test

    def execute(self, test):
        made = self.scratch.make(*test.targets)
        if not made.ok:
            return made
        usual = self.reach.seconds(test)
        return self.scratch.run(test.command, max(30, 5 * usual) if usual else SECONDS, test.tmp or self.scratch.tmp)


def put(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def first_failure(text):
    signs = ("[  FAILED  ]", "FAILED", "FAIL:", "ERROR:", "runtime error", "not ok", "[  ERROR   ]")
    lines = text.splitlines()
    return next((line.strip()[:160] for sign in signs for line in lines if sign in line), (lines or ["it says nothing"])[-1].strip()[:160])


# ---- all of them ----

class Report:
    def __init__(self):
        self.rows = []
        self.not_counted = 0

    def add(self, number, fault, verdict):
        self.rows.append((number, fault, verdict))
        said = SURVIVED + (f" ({verdict.by})" if verdict.by else "") if verdict.step == SURVIVED else f"noticed by {verdict.step}, {verdict.by},"
        print(f"{number:4} {fault.path}:{fault.number} {fault.kind}: {said} after {verdict.seconds:.0f} s", flush=True)

    def survivors(self):
        return [(number, fault) for number, fault, verdict in self.rows if verdict.step == SURVIVED]

    def percent(self):
        return 100 * (len(self.rows) - len(self.survivors())) / len(self.rows)

    def print(self, seed):
        for number, fault in self.survivors():
            print(f"\nnobody noticed this; again: tests/mutate.sh --seed {seed} --only {number}\n{diff(fault)}", end="")
        steps = [COMPILER, *(step for steps in candidates.STEPS.values() for step in steps), SURVIVED]
        table = collections.defaultdict(collections.Counter)
        for _, fault, verdict in self.rows:
            parts = fault.path.split("/")
            table["/".join(parts[:2]) if parts[0] == "common" else parts[0]][verdict.step] += 1
        print("\n" + "  ".join(["folder".ljust(20), *steps]))
        for folder in sorted(table):
            print("  ".join([folder.ljust(20), *(str(table[folder][step] or "").rjust(len(step)) for step in steps)]))
        print(f"{len(self.rows)} faults, {len(self.rows) - len(self.survivors())} noticed, {len(self.survivors())} not: "
              f"{self.percent():.0f} %; {self.not_counted} more were not counted, since they do not compile or change nothing")


def parse():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--steps", default="unit,scripts,e2e")
    parser.add_argument("--only", type=int, action="append")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--cache", required=True)
    return parser.parse_args()


def attempt_all(options, report):
    scratch = Scratch(options.cache)
    try:
        scratch.prepare()
        bench = Bench(scratch, options.steps.split(","))
        for number, fault in choose(options.seed):
            if len(report.rows) >= (len(options.only) if options.only else options.count):
                break
            if options.only and number not in options.only:
                continue
            verdict = bench.attempt(fault)
            if verdict:
                report.add(number, fault, verdict)
            else:
                report.not_counted += 1
    finally:
        scratch.close()


def main():
    options = parse()
    if options.list:
        for number, fault in choose(options.seed):
            if number > options.count:
                break
            print(f"{number} {fault.kind}\n{diff(fault)}", end="")
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _frame: sys.exit(128 + caught))
    report = Report()
    try:
        attempt_all(options, report)
    except Trouble as trouble:
        print(f"mutate.sh: {trouble}", file=sys.stderr)
        return 2
    except OSError as trouble:
        print(f"mutate.sh: {trouble.filename or options.cache}: {trouble.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate.sh: ended before the last fault", file=sys.stderr)
    if not report.rows:
        return 2
    report.print(options.seed)
    return 0 if report.percent() >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())

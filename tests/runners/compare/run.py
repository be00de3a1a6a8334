#!/usr/bin/env python3
"""Programs under the bare interpreter and under every way in which a run can begin: both must do the same.

usage: run.py [--way WAY]… [--jobs N] [--list] [WORD…]      WORD: only programs whose language/name contains it

Prints one line for each program and way, the difference below a failure, and the counts. Skips (77) without an engine.
"""
import argparse
import concurrent.futures
import signal
import sys
import threading
import time

import container
import judge
import program
import ways
from results import Results

SKIPPED = 77
# What fails one run and not the comparison.
TROUBLES = (ways.Trouble, OSError, AssertionError)


def is_offered(way, labels):
    """Whether an image with these labels can begin that way."""
    return way == "cold" or (labels.get("sandbox.warm") == "true" and (way == "started" or "sandbox.preload" in labels))


class Comparison:
    """One program: its outcome without an entry program, and those of its ways."""

    def __init__(self, one, chosen, labels, report):
        self.program = one
        self.report = report
        self.preload = labels.get("sandbox.preload", "")
        self.ways = [way for way in one.ways if way in chosen and is_offered(way, labels)]
        self.bare = None
        self.before = []
        self.lock = threading.Lock()

    def run_bare(self, bare):
        self.bare = bare.run(self.program)
        self.before = [self.bare]

    def run_way(self, way):
        began = time.monotonic()
        try:
            outcome = ways.run(way, self.program, self.preload)
        except TROUBLES as trouble:
            self.report.line("FAILED", f"{self.program} {way}", [repr(trouble)])
            return
        with self.lock:
            wrong = judge.problems(self.program, way, self.bare, outcome, self.before)
            self.before.append(outcome)
        what = f"{self.program} {way}" + (f" ({outcome.begun})" if outcome.begun else "")
        self.report.line("FAILED" if wrong else "ok", what, wrong, time.monotonic() - began)


def with_bare(comparisons, report):
    """Runs the bare interpreter for one after another; yields those that have its outcome."""
    bare = None
    for one in comparisons:
        try:
            bare = bare or ways.Bare(one.program.language)
            one.run_bare(bare)
            yield one
        except TROUBLES as trouble:
            report.line("FAILED", f"{one.program} bare", [repr(trouble)])
            if bare:
                bare.close()
            bare = None
    if bare:
        bare.close()


def compare_language(comparisons, pool, report):
    """As soon as the bare interpreter is done with a program, its ways go to the pool; returns what is under way there."""
    return [pool.submit(one.run_way, way) for one in with_bare(comparisons, report) for way in one.ways]


def prepare(language, programs, chosen, report):
    """The comparisons of a language; says what cannot be compared."""
    labels = container.labels(language)
    if labels is None:
        report.skip(language, "no image with it; runners/build.sh")
        return []
    for way in chosen:
        if not is_offered(way, labels) and any(way in one.ways for one in programs):
            report.skip(f"{language} {way}", "the image has no label that offers it")
    return [Comparison(one, chosen, labels, report) for one in programs]


def compare(programs, chosen, jobs):
    report = Results()
    pool, bare_pool = concurrent.futures.ThreadPoolExecutor(jobs), concurrent.futures.ThreadPoolExecutor()
    try:
        waiting = []
        for language in dict.fromkeys(one.language for one in programs):
            comparisons = prepare(language, [p for p in programs if p.language == language], chosen, report)
            waiting.append(bare_pool.submit(compare_language, comparisons, pool, report))
        for language in waiting:
            for way in language.result():
                way.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # also when we are interrupted
        bare_pool.shutdown(wait=False)
    return report.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", choices=program.ALL_WAYS)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    programs = program.load_all(options.word)
    if options.list:
        for one in programs:
            print(one, *one.ways)
        return 0
    try:
        container.engine.api("GET", "/_ping")
    except (OSError, container.engine.Skip, container.engine.Failed):
        print("skipped tests/runners/compare: no container engine answers")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return compare(programs, options.way or program.ALL_WAYS, options.jobs)
    finally:
        container.remove_all()


if __name__ == "__main__":
    sys.exit(main())

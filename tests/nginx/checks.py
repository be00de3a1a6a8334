"""Counts and prints; the seconds are those since the line before."""
import textwrap
import time


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.since = time.monotonic()

    def check(self, name, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        now = time.monotonic()
        print(f"{'ok' if good else 'FAILED'} {name} ({now - self.since:.1f} s)", flush=True)
        self.since = now
        if not good:
            print(textwrap.indent(str(detail), "    "), flush=True)

    def equal(self, name, got, wanted):
        self.check(name, got == wanted, f"got {got!r}\nwanted {wanted!r}")

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped {name}: {reason}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0

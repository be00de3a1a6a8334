"""Counts and prints."""


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
            print(f"ok - {name}", flush=True)
        else:
            self.failed += 1
            print(f"not ok - {name}", flush=True)
            for line in str(detail).splitlines():
                print(f"#   {line}", flush=True)

    def equal(self, name, got, wanted):
        self.check(name, got == wanted, f"got {got!r}\nwanted {wanted!r}")

    def skip(self, name, reason):
        self.skipped += 1
        print(f"ok - {name} # SKIP {reason}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0

"""Compares and tells."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from results import Results  # noqa: E402  pylint: disable=wrong-import-position


class Checks(Results):
    def check(self, name, good, detail=""):
        self.line("ok" if good else "FAILED", name, () if good else [detail])

    def equal(self, name, got, wanted):
        self.check(name, got == wanted, f"got {got!r}\nwanted {wanted!r}")

"""unittest as the other suites print it: a line for each test, below it what failed there, the counts at the end."""
import sys
import textwrap
import time
import unittest

SKIPPED = 77


class Lines(unittest.TestResult):
    """The seconds are those since the line before."""

    def __init__(self):
        super().__init__()
        self.counts = {"ok": 0, "FAILED": 0, "skipped": 0}
        self.since = time.monotonic()
        self.details = []

    def line(self, word, test, reason=""):
        self.counts[word] += 1
        where, _, name = test.id().removeprefix("__main__.").partition(".")
        now = time.monotonic()
        seconds = f" ({now - self.since:.1f} s)" if word != "skipped" else ""
        self.since = now
        print(f"{word} {where}: {name.removeprefix('test_').replace('_', ' ')}{seconds}{reason}", flush=True)
        for detail in self.details:
            print(textwrap.indent(detail, "    "), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.details, self.skip_reason = [], None

    def stopTest(self, test):
        super().stopTest(test)
        if self.details or self.skip_reason is None:
            self.line("FAILED" if self.details else "ok", test)
        else:
            self.line("skipped", test, f": {self.skip_reason}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if isinstance(test, unittest.TestCase) and hasattr(test, "test_case"):  # a part of one
            self.line("skipped", test, f": {reason}")
        else:
            self.skip_reason = reason

    def addError(self, test, err):
        super().addError(test, err)
        self.details.append(self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.details.append(self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.details.append(f"{subtest}\n{self._exc_info_to_string(err, test)}")


class Runner:
    def run(self, tests):
        result = Lines()
        tests.run(result)
        print("%d passed, %d failed, %d skipped" % tuple(result.counts.values()))
        return result


def main(missing=None):
    """The tests of the program, of which words may choose some. missing: why none can be run, if so."""
    if missing:
        print(f"skipped {sys.argv[0]}: {missing}")
        sys.exit(SKIPPED)
    unittest.main(testRunner=Runner())

"""unittest as the other suites print it: a line for each test, below it what failed there, the counts at the end."""
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from results import Results  # noqa: E402

SKIPPED = 77


def sentence(test):
    where, _, name = test.id().removeprefix("__main__.").partition(".")
    return f"{where}: {name.removeprefix('test_').replace('_', ' ')}"


class Lines(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.results = Results()
        self.details, self.skip_reason = [], None

    def startTest(self, test):
        super().startTest(test)
        self.details, self.skip_reason = [], None

    def stopTest(self, test):
        super().stopTest(test)
        if self.details or self.skip_reason is None:
            self.results.line("FAILED" if self.details else "ok", sentence(test), self.details)
        else:
            self.results.skip(sentence(test), self.skip_reason)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if isinstance(test, unittest.TestCase) and hasattr(test, "test_case"):  # a part of one
            self.results.skip(sentence(test), reason)
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
        result.results.end()
        return result


def main(missing=None):
    """The tests of the program, of which words may choose some. missing: why none can be run, if so."""
    if missing:
        print(f"skipped {sys.argv[0]}: {missing}")
        sys.exit(SKIPPED)
    unittest.main(testRunner=Runner())

"""Registration and running of end-to-end tests: one function is one test, its name a sentence.

A test module calls @test("…") on functions without arguments. Whatever is started during a test and handed to
at_test_end() ends with it, whatever is handed to at_module_end() with the tests of its module, and whatever is handed to
at_end() with the process.
"""
import collections
import contextlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IS_ROOT = os.geteuid() == 0

sys.path.append(os.path.join(TOP, "tests/lib"))
import leftovers  # noqa: E402  pylint: disable=wrong-import-position

# A machine whose cores are shared keeps a promised time only mostly: a test is late after this many times of it, and shows
# what has to happen, not how fast. Times are measured by tests/bench.
PATIENCE = int(os.environ.get("SANDCGI_TEST_PATIENCE", "3"))

# So many tests of a run may have a second attempt, with both told: the failure of one shall not hide what the others say.
SECOND_ATTEMPTS = 3

_tests = []
_suite = contextlib.ExitStack()
_module = contextlib.ExitStack()
_current = contextlib.ExitStack()
_scratch = None


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


class Failed(AssertionError):
    """A check that did not hold."""


class TimedOut(BaseException):
    """Not an Exception: a test's own except clauses must not swallow it."""


class Test:
    def __init__(self, sentence, timeout, core, alone, function):
        self.sentence = sentence
        self.timeout = timeout
        self.core = core
        self.alone = alone
        self.function = function
        self.module = function.__module__

    def matches(self, word):
        module = self.module.removeprefix("test_")
        return word in (module, self.module) or word.lower() in f"{module}: {self.sentence}".lower()


def test(sentence, timeout=60, core=False, alone=None):
    """core: belongs to the run without options; alone: why nothing may run beside it."""
    def register(function):
        _tests.append(Test(sentence, timeout, core, alone, function))
        return function
    return register


# ---- checks ----

def check(condition, message):
    if not condition:
        raise Failed(message)


def equal(got, want, what="value"):
    if got != want:
        raise Failed(f"{what}: got {shorten(got)}, want {shorten(want)}")


def contains(text, part, what="text"):
    if part not in text:
        raise Failed(f"{what} does not contain {part!r}: {shorten(text)}")


def shorten(value, limit=1500):
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + f"… ({len(text)} characters)"


def in_time(start, seconds, what):
    took = time.monotonic() - start
    check(took < seconds * PATIENCE, f"{took:.1f} s instead of {seconds}: {what}")


def wait_until(probe, seconds, what, pause=0.05):
    """The first true value of probe(); fails when there is none in time."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {seconds * PATIENCE} s: {what}")
        time.sleep(pause)


def holds_for(probe, seconds, what, pause=0.1):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not probe():
            raise Failed(f"did not last {seconds} s: {what}")
        time.sleep(pause)


# ---- clean ends ----

def at_end(function, *args):
    _suite.callback(function, *args)


def at_module_end(function, *args):
    _module.callback(function, *args)


def at_test_end(function, *args):
    _current.callback(function, *args)


def end_test():
    """For what is no test: ends what was handed to at_test_end()."""
    _current.close()


def end_module():
    _module.close()


def scratch():
    """The suite's directory; readable by the accounts of nginx and of the workers."""
    global _scratch
    if not _scratch:
        if os.environ.get("SANDCGI_TEST_KEEP"):
            _scratch = tempfile.mkdtemp(prefix="sandcgi-e2e-", dir="/tmp")
        else:
            _scratch = leftovers.make_folder("sandcgi-e2e-")
            at_end(shutil.rmtree, _scratch, True)
        os.chmod(_scratch, 0o755)
    return _scratch


_numbers = {}


def new_folder(name):
    number = _numbers[name] = _numbers.get(name, 0) + 1
    path = os.path.join(scratch(), f"{name}{number}")
    os.mkdir(path)
    os.chmod(path, 0o755)
    return path


# ---- running ----

def _on_alarm(_signal, _frame):
    raise TimedOut()


def _run_one(test_):
    global _current
    _current = contextlib.ExitStack()
    start = time.monotonic()
    state, detail = "ok", ""
    signal.alarm(test_.timeout * PATIENCE)
    try:
        test_.function()
    except Skip as reason:
        state, detail = "skipped", str(reason)
    except TimedOut:
        state, detail = "FAILED", f"took longer than {test_.timeout * PATIENCE} s\n{traceback.format_exc(limit=-6)}"
    except Failed as failure:
        state, detail = "FAILED", f"{failure}\n{_place()}"
    except Exception:  # pylint: disable=broad-except
        state, detail = "FAILED", traceback.format_exc(limit=-8)
    except BaseException:  # we are asked to end
        _current.close()
        raise
    finally:
        signal.alarm(0)
    try:
        signal.alarm(60)
        _current.close()
    except (Exception, TimedOut):  # pylint: disable=broad-except
        state, detail = "FAILED", detail + "\nwhile cleaning up: " + traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)
    return state, detail, time.monotonic() - start


def _on_end(number, _frame):
    sys.exit(128 + number)  # through every finally: everything that was started ends


def _place():
    frames = [f for f in traceback.extract_tb(sys.exc_info()[2]) if os.path.basename(f.filename).startswith("test_")]
    return "\n".join(f"  {os.path.basename(f.filename)}:{f.lineno}: {f.line}" for f in frames)


def selected(word, core=False):
    return [t for t in _tests if (not word or t.matches(word)) and (t.core or not core)]


def take_signals():
    """Being asked to end, a process ends what it started."""
    signal.signal(signal.SIGALRM, _on_alarm)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _on_end)


def run_module(tests, on_failure, counts):
    """Runs the tests of one module and ends what they share. on_failure() returns text that may explain a failure."""
    print(f"-- {tests[0].module.removeprefix('test_')}", flush=True)
    for one in tests:
        attempts_left = counts["unsteady"] < SECOND_ATTEMPTS
        state = _run_and_tell(one, on_failure, "unsteady" if attempts_left else "FAILED")
        if state == "FAILED" and attempts_left:
            counts["unsteady"] += 1
            state = _run_and_tell(one, on_failure, "FAILED")
        counts[state] += 1
    end_module()


def run_tests(word, on_failure, core=False):
    """Runs what word selects (None: all), core: of the core. Returns the counts of "ok", "FAILED", "skipped" and "unsteady"."""
    counts = collections.Counter()
    take_signals()
    try:
        for _, tests in itertools.groupby(selected(word, core), lambda one: one.module):
            run_module(list(tests), on_failure, counts)
    finally:
        close()
    return counts


def _run_and_tell(one, on_failure, failed):
    """failed: the word for a failure."""
    state, detail, seconds = _run_one(one)
    print(f"skipped {one.sentence}: {detail}" if state == "skipped" else f"{failed if state == 'FAILED' else state} {one.sentence} ({seconds:.1f} s)", flush=True)
    if state == "FAILED":
        print("    " + detail.strip().replace("\n", "\n    "), flush=True)
        explanation = on_failure()
        if explanation:
            print("    | " + explanation.strip().replace("\n", "\n    | "), flush=True)
        print(flush=True)  # that was all
    return state


def close():
    signal.alarm(0)
    _module.close()
    _suite.close()

"""Result lines and counts of the suites that e2e/harness.py does not run."""
import textwrap
import threading
import time


class Results:
    def __init__(self):
        self.counts = {"ok": 0, "FAILED": 0, "skipped": 0}
        self.since = time.monotonic()
        self.lock = threading.Lock()

    def line(self, word, sentence, details=(), seconds=None):
        """seconds None: those since the line before."""
        with self.lock:
            self.counts[word] += 1
            now = time.monotonic()
            print(f"{word} {sentence} ({now - self.since if seconds is None else seconds:.1f} s)", flush=True)
            self.since = now
            for one in details:
                print(textwrap.indent(str(one), "    "), flush=True)

    def skip(self, sentence, reason):
        with self.lock:
            self.counts["skipped"] += 1
            print(f"skipped {sentence}: {reason}", flush=True)

    def end(self):
        """Prints the counts; the status to exit with."""
        print("%d passed, %d failed, %d skipped" % tuple(self.counts.values()), flush=True)
        return 1 if self.counts["FAILED"] else 0

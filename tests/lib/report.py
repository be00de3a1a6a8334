"""What a run of the tests shows: failures at once, a line for each stage that is under way, the tables of the end."""
import collections
import re
import shutil
import sys
import time

import stages

SLOWEST = 10
# Without a terminal, what is under way is told so often.
TOLD_EVERY_S = 60


def seconds(value):
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def how_to_run(one):
    """The command that runs this test, or else its stage, again."""
    words = stages.name_of(one)
    return "tests/run.sh --only " + (words if re.fullmatch(r"[\w:./-]+", words) else "'" + words.replace("'", "'\\''") + "'")


class Display:
    """before: results of the last run, which tell how many tests a stage has."""

    def __init__(self, before, out=sys.stdout):
        self.out, self.is_terminal = out, out.isatty()
        self.expected = collections.Counter(one.stage for one in before if one.state != "unsteady")
        self.begin_s, self.told_s, self.drawn = time.monotonic(), time.monotonic(), 0
        self.results, self.ended_runs = [], []
        self.done = collections.Counter()

    # ---- while it runs ----

    def say(self, text):
        self.clear()
        print(text, file=self.out, flush=True)

    def clear(self):
        if self.drawn:
            self.out.write(f"\033[{self.drawn}A\033[J")
            self.drawn = 0

    def begun(self, run):
        if not self.is_terminal:
            self.say(f"== {run.stage.name} begins at {seconds(time.monotonic() - self.begin_s)}")

    def ended(self, run):
        self.ended_runs.append(run)
        failed = sum(one.state == "FAILED" for one in run.results)
        told = f"{self.done[run.stage.name]} tests, " if self.done[run.stage.name] else ""
        self.say(f"== {run.stage.name}: {told}{f'{failed} failed, ' if failed else ''}{seconds(run.seconds)}")

    def result(self, one):
        self.results.append(one)
        if one.state != "unsteady":
            self.done[one.stage] += 1
        if one.state in ("FAILED", "unsteady"):
            word = "FAILED" if one.state == "FAILED" else "failed at the first attempt:"
            self.say("\n".join([f"{word} {one.stage}: {one.sentence}", *one.detail[:60], f"    this one: {how_to_run(one)}"]))

    def line_of(self, run):
        done, expected = self.done[run.stage.name], self.expected[run.stage.name]
        return f"{run.stage.name:<12} {done if done or expected else '':>5} {f'of {max(done, expected)}' if expected else '':<8} {seconds(time.monotonic() - run.begun)}"

    def tick(self, runs):
        now = time.monotonic()
        if self.is_terminal:
            self.clear()
            width = shutil.get_terminal_size().columns
            for run in runs:
                print(self.line_of(run)[:width - 1], file=self.out)
            self.out.flush()
            self.drawn = len(runs)
        elif now - self.told_s >= TOLD_EVERY_S:
            self.told_s = now
            print(f"   at {seconds(now - self.begin_s)}: " + "; ".join(" ".join(self.line_of(run).split()) for run in runs), file=self.out, flush=True)

    # ---- the end ----

    def counts(self):
        states = collections.Counter(one.state for one in self.results)
        return states["ok"], states["FAILED"], states["skipped"]

    def table(self):
        yield f"\n{'stage':<12} {'seconds':>8} {'passed':>7} {'failed':>7} {'skipped':>7}"
        for run in self.ended_runs:
            states = collections.Counter(one.state for one in run.results)
            yield f"{run.stage.name:<12} {run.seconds:>8.0f} " + " ".join(f"{states[state] or '':>7}" for state in ("ok", "FAILED", "skipped"))
        yield f"{'all':<12} {time.monotonic() - self.begin_s:>8.0f}"

    def finish(self, hint):
        """hint: how the rest is run. True when nothing failed."""
        self.clear()
        said = list(self.table())
        slowest = sorted(self.results, key=lambda one: -one.seconds)[:SLOWEST]
        if slowest and slowest[0].seconds:
            said += ["\nthe slowest tests", *(f"{one.seconds:>8.1f} s  {one.stage}: {one.sentence}" for one in slowest if one.seconds)]
        for state, heading in (("unsteady", "unsteady: failed at the first attempt, passed at the second"), ("skipped", "skipped"), ("FAILED", "failed")):
            found = [one for one in self.results if one.state == state]
            if found:
                said += [f"\n{heading}", *(f"  {one.stage}: {one.sentence}{': ' + one.reason if one.reason else ''}" for one in found)]
        passed, failed, skipped = self.counts()
        if failed:
            said += ["\nwhat failed, again: tests/run.sh --failed"]
        print("\n".join(said), file=self.out)
        if hint:
            print(f"\n{hint}", file=self.out)
        print(f"\n{passed} passed, {failed} failed, {skipped} skipped", file=self.out, flush=True)
        return not failed

"""How long one run takes: every way next to the others in each round, in an order by chance."""
import random
import time

from bare import Bare, Exec
from loads import at_once
from rest import REST_S
from servers import World
from stack import Caller, new_name
from stats import Table, median, number, quantile
from work import PRINT, LeftOut

SETTLE_S = 0.25  # removing the last container keeps the engine busy for a while
P95_GOAL = 1.5
# What the stack adds to what the bare client measures in the same round: (title, with it, without it, goal in ms).
SHARES = (("the stack's own share, warm, pair by pair", "run_code, warm, new conversation", "warm container, bare REST client", 3),
          ("the stack's own share, cold, pair by pair", "run_code, cold", "cold, bare REST client", 5))
WARM = SHARES[0][1]
DRAIN = 6  # callers at once that leave no container waiting


class Ways:
    """The ways to run a work, by title; each returns milliseconds."""

    def __init__(self, world: World, works, only=()):
        languages = {work.language: work for work in works}
        self.world = world
        self.bare = {language: Bare(language, world.folder) for language in languages}
        self.exec = {language: Exec(world.client, work, f"{world.folder}/exec-{language}") for language, work in languages.items()}
        self.known = {}
        self.callers = {}
        self.table = {
            "bare interpreter": lambda work: self.bare[work.language].run(work),
            "docker exec": lambda work: self.exec[work.language].run(work),
            "cold, bare REST client": world.client.cold,
            "run_code, cold": lambda work: self.caller("cold").run(work),
            "warm container, bare REST client": world.client.waiting,
            WARM: self.new_conversation,
            "run_code, warm, known conversation": self.known_conversation,
            "run_code, warm, new TLS connection": self.new_connection,
            "run_code, pool just emptied": self.emptied,
        }
        if world.peer:
            peer = Caller(world.peer)
            self.table["peer, run_code"] = peer.run
        if only:
            self.table = {title: way for title, way in self.table.items() if any(text in title for text in only)}

    def caller(self, kind):
        if kind not in self.callers:
            self.callers[kind] = getattr(self.world, kind).caller()
        return self.callers[kind].warm_up()

    def wait_for(self, work, **wanted):
        """Until a container waits, and has done so for as long as the bare client's does."""
        self.world.warm.wait_for(work, **wanted)
        time.sleep(REST_S)

    def new_conversation(self, work):
        self.wait_for(work)
        return self.caller("warm").run(work)

    def known_conversation(self, work):
        """The conversation that ran this work before; its next container has been started meanwhile."""
        if work not in self.known:
            name = new_name()
            self.known[work] = name, self.caller("warm").directory(name)
        name, directory = self.known[work]
        self.caller("warm").run(work, name)
        self.wait_for(work, sandbox=directory)
        return self.caller("warm").run(work, name)

    def new_connection(self, work):
        self.wait_for(work)
        caller = Caller(self.world.warm.target)
        try:
            return caller.run(work)
        finally:
            caller.close()

    def emptied(self, work):
        """Right behind a burst that took all warm containers."""
        burst = [self.world.warm.caller() for _ in range(DRAIN)]
        at_once([lambda caller=caller: caller.run(PRINT if work.language == "python" else work) for caller in burst])
        for caller in burst:
            caller.close()
        return self.caller("warm").run(work)

    def close(self):
        for one in (*self.bare.values(), *self.exec.values(), *self.callers.values()):
            one.close()


class Contest:
    """Samples of every way and work."""

    def __init__(self, ways, works):
        self.ways = ways
        self.samples = {(way, work): [] for way in ways.table for work in works}
        self.shares = {(share[0], work): [] for share in SHARES for work in works}
        self.around = {work: [] for work in works}
        self.left_out = {}

    def measure(self, way, work, count):
        if (way, work) in self.left_out:
            return None
        try:
            took = self.ways.table[way](work)
        except LeftOut as reason:
            self.left_out[way, work] = reason
            return None
        if count:
            self.samples[way, work].append(took)
            if way == WARM:
                self.around[work].append(self.ways.callers["warm"].around)
        time.sleep(SETTLE_S)
        return took

    def round(self, works, count):
        for work in random.sample(works, len(works)):
            order = random.sample(list(self.ways.table), len(self.ways.table))
            took = {way: self.measure(way, work, count) for way in order}
            for title, whole, floor, _ in SHARES:
                if count and took.get(whole) and took.get(floor):
                    self.shares[title, work].append(took[whole] - took[floor])


def _print_work(contest, work, rounds, markdown):
    base = median(contest.samples.get(("bare interpreter", work)) or [0])
    table = Table(f"{work.name}: milliseconds of {rounds} rounds", "", "median", "p95", "max", "× bare")
    for way in contest.ways.table:
        values = contest.samples[way, work]
        if values:
            ratio = f"{median(values) / base:.2f}" if base else "–"
            table.add(way, number(median(values)), number(quantile(values, 0.95)), number(max(values)), ratio)
        else:
            table.note(f"left out: {way}: {contest.left_out.get((way, work), 'no sample')}")
    for title, _, _, goal in SHARES:
        values = contest.shares[title, work]
        if values:
            table.add(title, number(median(values), 2), number(quantile(values, 0.95), 2), number(max(values), 2), f"goal {goal} ms")
    if contest.around[work]:
        values = contest.around[work]
        table.add("the same, warm, beside the answer's durationMs", number(median(values), 2), number(quantile(values, 0.95), 2),
                  number(max(values), 2), "whole ms")
    table.note(f"goal of run_code, warm, new conversation: {work.goal} x bare (median)")
    if base and contest.samples.get((WARM, work)):
        table.note(f"its p95 is {quantile(contest.samples[WARM, work], 0.95) / base:.2f} x bare's median; goal for print {P95_GOAL}")
    table.print(markdown)


def part(world, options):
    works = options.works
    ways = Ways(world, works, options.way)
    if not ways.table:
        raise SystemExit("--way: no way's title holds that")
    try:
        contest = Contest(ways, works)
        contest.round(works, count=False)
        for _ in range(options.rounds):
            contest.round(works, count=True)
    finally:
        ways.close()
    for work in works:
        _print_work(contest, work, options.rounds, options.markdown)

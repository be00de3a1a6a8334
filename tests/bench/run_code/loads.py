"""Many callers: closed loops of some seconds, and bursts."""
import threading
import time

from servers import READY
from stack import Caller
from rest import Container
from stats import Table, median, number, quantile
from work import PRINT

CALLERS = (1, 2, 4, 8, 16, 50)
BURST = 50
READY_GOAL = 100   # runs a second
BURST_GOAL = 1.3   # of the engine's own time
RATE_GOAL = 0.9    # of the bare client's best rate


def at_once(jobs):
    """Runs the jobs in threads of their own, all let go in one moment. (seconds of all, their results or exceptions)."""
    gate = threading.Barrier(len(jobs) + 1)
    results = [None] * len(jobs)

    def work(n):
        gate.wait()
        try:
            results[n] = jobs[n]()
        except Exception as problem:  # pylint: disable=broad-except
            results[n] = problem
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(jobs))]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start, results


class Loop:
    """A closed loop: callers that each ask again as soon as they were answered."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.times = []
        self.errors = []

    def _caller(self, run, until):
        while time.perf_counter() < until:
            try:
                self.times.append(run())
            except Exception as problem:  # pylint: disable=broad-except
                self.errors.append(problem)
                time.sleep(0.1)

    def run(self, runs, stock=0):
        """One caller per function of runs. Runs a second; stock containers that were warm before are no rate."""
        start = time.perf_counter()
        at_once([lambda one=one: self._caller(one, start + self.seconds) for one in runs])
        return max(0, len(self.times) - stock) / (time.perf_counter() - start)


def _loop_row(table, callers, who, loop, rate):
    table.add(str(callers), who, number(rate), number(median(loop.times)), number(quantile(loop.times, 0.95)), len(loop.errors))
    if loop.errors:
        table.note(f"{callers} callers, {who}: {str(loop.errors[0])[:200]}")


def _stack_loop(target, callers, seconds, stock):
    lanes = [Caller(target).warm_up() for _ in range(callers)]
    loop = Loop(seconds)
    rate = loop.run([lambda lane=lane: lane.run(PRINT) for lane in lanes], stock)
    for lane in lanes:
        lane.close()
    return loop, rate


def _client_loop(world, callers, seconds):
    clients = [world.new_client() for _ in range(callers)]
    loop = Loop(seconds)
    rate = loop.run([lambda client=client: client.cold(PRINT) for client in clients])
    for client in clients:
        client.close()
    return loop, rate


def throughput(world, options):
    table = Table(f"{PRINT.name} in closed loops of {options.seconds} s, each call a new conversation", "callers", "who",
                  "runs/s", "median ms", "p95 ms", "errors")
    best_client, worst_of_ours = 0, None
    for callers in CALLERS:
        loop, rate = _client_loop(world, callers, options.seconds)
        _loop_row(table, callers, "bare REST client, cold", loop, rate)
        best_client = max(best_client, rate)
        stock = world.warm.stock(PRINT)
        loop, rate = _stack_loop(world.warm.target, callers, options.seconds, stock)
        _loop_row(table, callers, "run_code", loop, rate)
        if callers <= 16 and (worst_of_ours is None or rate < worst_of_ours):
            worst_of_ours = rate
        if world.peer:
            loop, rate = _stack_loop(world.peer, callers, options.seconds, 0)
            _loop_row(table, callers, "peer", loop, rate)
    if best_client:
        table.note(f"run_code's slowest loop of 1 to 16 callers: {worst_of_ours / best_client:.2f} of the bare client's best rate; "
                   f"goal >= {RATE_GOAL}. What had waited before a loop is not counted")
    table.print(options.markdown)


def _burst_row(table, title, seconds, results):
    times = [one for one in results if not isinstance(one, Exception)]
    table.add(title, f"{seconds * 1000:.0f}", number(len(times) / seconds), number(median(times)),
              number(quantile(times, 0.95)), number(max(times, default=None)), len(results) - len(times))
    for problem in (one for one in results if isinstance(one, Exception)):
        table.note(f"{title}: {str(problem)[:200]}")
        break
    return quantile(times, 0.95)


def _ready_burst(world):
    """As many as wait, all claimed in one moment."""
    world.many.wait_for(PRINT, READY, seconds=180)
    lanes = [world.many.caller() for _ in range(READY)]
    outcome = at_once([lambda lane=lane: lane.run(PRINT) for lane in lanes])
    for lane in lanes:
        lane.close()
    return outcome


def _timed(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1000


def _ready_containers(world):
    """The same by the bare client, with containers of its own."""
    containers = [Container(world.client, PRINT).make_ready() for _ in range(READY)]
    outcome = at_once([lambda container=container: _timed(container.run) for container in containers])
    for container in containers:
        container.remove()
    return outcome


def _starts(world, lanes):
    """The engine's own time for BURST runs, so many at once."""
    clients = [world.new_client() for _ in range(lanes)]
    left = list(range(BURST))
    times = []
    began = time.perf_counter()

    def lane(client):
        while left:
            left.pop()
            client.cold(PRINT)
            times.append((time.perf_counter() - began) * 1000)
    seconds, _ = at_once([lambda client=client: lane(client) for client in clients])
    for client in clients:
        client.close()
    return seconds, times


def _cold_burst(world):
    lanes = [world.cold.caller() for _ in range(BURST)]
    outcome = at_once([lambda lane=lane: lane.run(PRINT) for lane in lanes])
    for lane in lanes:
        lane.close()
    return outcome


def bursts(world, options):
    table = Table(f"Bursts of {PRINT.name}", "", "all ms", "runs/s", "median ms", "p95 ms", "max ms", "errors")
    for _ in range(options.bursts):
        _burst_row(table, f"{READY} warm containers, run_code", *_ready_burst(world))
        _burst_row(table, f"{READY} warm containers, bare REST client", *_ready_containers(world))
    table.note(f"goal: {READY} warm containers at once: >= {READY_GOAL} runs/s")
    for lanes in (4, BURST):
        seconds, times = _starts(world, lanes)
        _burst_row(table, f"{BURST} cold runs, bare REST client, {lanes} at once", seconds, times)
        if lanes == BURST:
            own = seconds * 1000
    p95 = _burst_row(table, f"{BURST} calls at once, nothing waits, run_code", *_cold_burst(world))
    table.note(f"p95 of the {BURST} calls: {p95 / own:.2f} of the engine's own time for {BURST} starts; goal <= {BURST_GOAL}")
    table.print(options.markdown)

"""Many runs, mixed languages and conversations: what the server holds does not grow."""
import os
import random

import engine
import procs
import runs
import sites
import warm
from harness import Failed, check, equal, test, wait_until

RUNS = int(os.environ.get("SANDCGI_TEST_SOAK") or 60)
FIRST = 500 if RUNS >= 1000 else max(4, RUNS // 4)  # after so many, nothing may grow any more
CONVERSATIONS = 50
LANES = 4
GROWTH = 6 << 20  # bytes of one process; a sanitizer's own books are in it
# What AddressSanitizer keeps of freed memory would look like a leak.
SMALL_QUARANTINE = {"ASAN_OPTIONS": f"{sites.SANITIZER_ENV['ASAN_OPTIONS']}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}

# Language, code, how it ends. Each prints its number first.
PROGRAMS = (("python", "print({n})", "ok"), ("python", "import numpy; open('f', 'a').write('x'); print({n})", "ok"),
            ("python", "import pandas\npandas.DataFrame({{'a': range(99)}}).to_csv('f.csv')\nprint({n})", "ok"),
            ("python", "print({n})\nraise ValueError", "error"), ("bash", "echo {n}", "ok"),
            ("bash", "echo x >>f; mkdir -p a/b; echo x >/tmp/left; setsid sleep 300 >/dev/null 2>&1 & echo {n}", "ok"),
            ("bash", "echo {n}; exit 3", "error"), ("typescript", "console.log({n})", "ok"),
            ("typescript", "console.log({n}); throw new Error('no')", "error"))
RARE = (("python", "print({n}, flush=True)\nwhile True: pass", "timeout"), ("bash", "echo {n}; sleep 300", "timeout"),
        ("python", "print({n}, flush=True)\nheld = [bytearray(b'x') * (16 << 20) for _ in range(64)]", "out_of_memory"))


def _compare(result, status, n, code):
    printed = result["stdout"]
    if status == "timeout" and not printed:  # on a busy machine a second is over before the interpreter is there
        printed = f"{n}\n"
    equal((result["status"], printed), (status, f"{n}\n"), code)


class Load:
    """Runs of all kinds: by turns in known conversations, a few in new ones, some by handle, some cancelled, some left alone."""

    def __init__(self, site):
        self.site = site
        self.done = 0
        self.conversations = [sites.new_conversation(site.client()).conversation for _ in range(CONVERSATIONS)]

    def lane(self, lane, n_runs):
        chance = random.Random(lane)
        client = sites.new_conversation(self.site.client())
        for n in range(n_runs):
            if n == 0 or chance.random() < 0.3:  # else as an agent, one call after the other
                client.conversation = chance.choice(self.conversations[lane % LANES::LANES])
            if chance.random() < 0.02:
                sites.new_conversation(client)
            self.one(client, chance, n)
            self.done += 1
        return True

    def one(self, client, chance, n):
        kind = chance.random()
        language, code, status = chance.choice(RARE if kind < 0.06 else PROGRAMS)
        code, limit = code.format(n=n), {"timeout": 1} if status == "timeout" else {}
        if kind < 0.8:
            _compare(client.run(code, language, **limit), status, n, code)
        elif kind < 0.9:
            run_id = runs.begin(client, code, language, **limit)
            _compare(runs.look(client, run_id, waitMs=60000), status, n, code)
        elif kind < 0.95:
            run_id = runs.begin(client, "sleep 60", "bash")
            equal(runs.cancel(client, run_id)["status"], "cancelled")
        else:
            client.begin_run("sleep 0.1", "bash").close()

    def run(self, n, offset):
        """n runs in several lanes."""
        jobs = [lambda lane=lane: self.lane(offset + lane, n // LANES) for lane in range(LANES)]
        for problem in warm.together(jobs):
            if problem is not True:
                raise Failed(f"after {self.done} runs: {problem!r}")


def _mounts(pid):
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
        return sum(1 for _ in file)


def _cgroups():
    """Groups of containers that exist, whichever the hierarchy."""
    return sum(len(name) == 64 or name.endswith(".scope") and "docker-" in name
               for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)


class Picture:
    """The sizes that must not grow."""

    def __init__(self, site):
        self.memory = {"master": procs.private_memory(site.process.pid), "broker": procs.private_memory(site.broker()),
                       "hub": procs.private_memory(site.hub_process()), "housekeeper": procs.private_memory(site.housekeeper() or 0),
                       "worker": max(map(procs.private_memory, site.workers()))}
        self.descriptors = {"master": len(procs.open_files(site.process.pid)), "broker": len(procs.open_files(site.broker())),
                            "hub": len(procs.open_files(site.hub_process())),
                            "worker": max(len(procs.open_files(pid)) for pid in site.workers())}
        self.processes = len(procs.descendants(site.process.pid))
        self.containers = len(site.containers())
        self.mounts = _mounts(engine.pid()) if engine.is_ours() else 0
        self.cgroups = _cgroups() if engine.is_ours() else 0
        self.staging = len(os.listdir(f"{site.root}/.staging"))


def _settle(site):
    """Until only the usual containers wait: those of conversations, and the places added in the rush, have gone, too."""
    def usual():
        now = warm.pool.status(site)["pool"]
        return now["starting"] == 0 and len(now["waiting"]) == sum(one["places"] for one in now["images"])
    wait_until(lambda: not site.containers() and usual(), 180, "only the usual pool is left", pause=1)


@test(f"{RUNS} runs of all kinds: memory, descriptors, containers, mounts, cgroups and directories do not grow",
      alone="counts the mounts and cgroups of the whole engine", timeout=240 + (RUNS + FIRST) * 3)
def _():
    site = sites.own({"SANDBOX_WARM": warm.POOL, "SANDBOX_WARM_IDLE": "2s", "SANDBOX_REUSE": "conversation",
                      "SANDBOX_MEMORY": "192m", "SANDBOX_RESULT_TTL": "20s", "SANDBOX_BACKGROUND_MAX": "50",
                      "SANDCGI_LOG_LEVEL": "info"}, environment=SMALL_QUARANTINE)
    load = Load(site)
    load.run(FIRST, 0)
    _settle(site)
    before = Picture(site)
    load.run(RUNS, LANES)
    _settle(site)
    after = Picture(site)
    reused = warm.pool.status(site)["reusedRuns"]
    print(f"    {load.done} runs, {reused} in a container that had served; before {vars(before)}; after {vars(after)}")
    check(reused > 0, "no run was in a container that had served")
    check(after.processes <= before.processes + 2, f"processes: {before.processes}, then {after.processes}")
    for name, size in after.memory.items():
        check(size - before.memory[name] < GROWTH, f"{name}: {before.memory[name] >> 10} kB, then {size >> 10} kB")
    for name, n in after.descriptors.items():
        check(n <= before.descriptors[name] + 2, f"descriptors of the {name}: {before.descriptors[name]}, then {n}")
    equal((after.containers, after.staging), (0, 0), "containers, entries in .staging")
    check(after.mounts <= before.mounts + 4, f"mounts of the engine: {before.mounts}, then {after.mounts}")
    check(after.cgroups <= before.cgroups + 24, f"cgroups: {before.cgroups}, then {after.cgroups}")
    wait_until(lambda: len(os.listdir(f"{site.root}/.pool")) <= len(warm.pool.unclaimed(site)), 20, "spare directories are in use")
    wait_until(lambda: len(os.listdir(f"{site.root}/.runs")) <= len(warm.pool.unclaimed(site)), 150, "locks and records have gone", pause=1)

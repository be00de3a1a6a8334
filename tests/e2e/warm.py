"""What tests of warm containers share: servers that have some, calls at the same time, a look into their cgroups."""
import json
import os
import threading

import engine
import pool
import sites
from harness import IS_ROOT, check, new_folder

POOL = "python=2,typescript=1,bash=1"


# Most tests here look at prestarted containers, which a used one would stand in for; test_reuse has those.
NO_REUSE = {"SANDBOX_REUSE": "never"}


def site(warm=POOL, start=True, **settings):
    """A server of the test's own that has warm containers."""
    return sites.own({"SANDBOX_WARM": warm} | NO_REUSE | settings, start)


def with_settings(warm=POOL, **settings):
    """One that tests of the module share which want the same."""
    return sites.with_settings(**{"SANDBOX_WARM": warm} | NO_REUSE | settings)


def idle_site(warm=POOL, **settings):
    """One whose server takes the machine for idle, however busy it is: it loads libraries without waiting."""
    if not IS_ROOT:
        return site(warm, **settings)
    folder = new_folder("idle")
    with open(f"{folder}/pressure", "w", encoding="ascii") as file:
        file.write("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n")
    wrapper = f"{folder}/sandcgi"
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(f"""#!/bin/sh
test "$1" = serve && unshare -m true && exec unshare -m sh -c 'mount --bind {folder}/pressure /proc/pressure/cpu; exec "$0" "$@"' {sites.BINARY} "$@"
exec {sites.BINARY} "$@"
""")
    os.chmod(wrapper, 0o755)
    return sites.own({"SANDBOX_WARM": warm} | NO_REUSE | settings, binary=wrapper)


def shared():
    """The one that tests use which break nothing."""
    return with_settings()


def new_client(of):
    return sites.new_conversation(of.client())


def places(of, language):
    """How many of a language are to wait for new conversations."""
    return int(dict(word.split("=") for word in of.settings["SANDBOX_WARM"].split(","))[language])


def run_waiting(of, client, code, language="python", **arguments):
    """A run when as many containers wait as shall; (result, the row of its container or None)."""
    pool.wait_for(of, places(of, language), language=language, sandbox="")
    before = pool.unclaimed(of)
    result = client.run(code, language, **arguments)
    return result, next((one for one in before if one["runId"] == result["runId"]), None)


def wait_next(of, client, language):
    """Waits for the next container of the client's conversation; its row. The name of its directory is in its files' links."""
    sandbox_dir = client.upload("name.txt", b"")["file"]["url"].partition("/files/")[2].partition("/")[0]
    return pool.wait_for(of, language=language, sandbox=sandbox_dir)[0]


def run_next(of, client, code, language="python"):
    """A run when the next container of the client's conversation waits; (result, whether it was one of its own: a run that
    had found no warm container may have had a second one made)."""
    sandbox_dir = wait_next(of, client, language)["sandbox"]
    before = pool.unclaimed(of)
    result = client.run(code, language)
    return result, any(one["runId"] == result["runId"] and one["sandbox"] == sandbox_dir for one in before)


def together(jobs):
    """Runs the jobs at the same time; their results, an exception in the place of one that failed."""
    results = [None] * len(jobs)

    def work(n):
        try:
            results[n] = jobs[n]()
        except Exception as problem:  # pylint: disable=broad-except
            results[n] = problem
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def container_of(of, run_id):
    """The id of the container with this label; None when there is none."""
    found = [one["Id"] for one in of.all_containers() if one["Labels"]["sandbox.run"] == run_id]
    return found[0] if found else None


def cpu_ns(container_id):
    """What the container's processes have used, from its cgroup."""
    pid = engine.inspect(container_id)["State"]["Pid"]
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in groups:
        if controllers == "" and os.path.exists(f"/sys/fs/cgroup{path}/cpu.stat"):
            with open(f"/sys/fs/cgroup{path}/cpu.stat", encoding="ascii") as file:
                return int(dict(line.split() for line in file)["usage_usec"]) * 1000
        if "cpuacct" in controllers.split(","):
            with open(f"/sys/fs/cgroup/cpuacct{path}/cpuacct.usage", encoding="ascii") as file:
                return int(file.read())
    raise OSError(f"no CPU accounting found for {container_id}")


OWN_LIMITS = """
import json
told = {}
for path in ("cpu.max", "memory.max", "pids.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes",
             "memory/memory.memsw.limit_in_bytes", "pids/pids.max"):
    try:
        with open("/sys/fs/cgroup/" + path) as file:
            told[path] = file.read()
    except OSError:
        pass
print(json.dumps(told))
"""


def cold_limits():
    """What OWN_LIMITS prints in a new container."""
    told = json.loads(new_client(sites.shared()).run(OWN_LIMITS)["stdout"])
    check(len(told) >= 3, told)
    return told

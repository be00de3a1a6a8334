#!/usr/bin/env python3
"""What an operator does on a machine with systemd and cgroup v2: run there as root, with the package installed and not started."""
import argparse
import glob
import json
import os
import re
import secrets
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import check, contains, equal, test, wait_until  # noqa: E402  pylint: disable=wrong-import-position
from mcp import Client, end_run  # noqa: E402  pylint: disable=wrong-import-position

CONFIG = "/etc/sandcgi/sandcgi.conf"
UNITS = ("sandcgi.service", "sandcgi.socket", "sandcgi-hub.socket", "sandcgi-doctor.timer", "sandcgi-doctor.service",
         "sandcgi-runners.service", "sandcgi-network.service")
CGROUPS = "/sys/fs/cgroup/system.slice"
MIB = 1 << 20


def command(*words, status=0, seconds=120):
    """What it prints on both streams; status None: any."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, timeout=seconds * harness.PATIENCE)
    if status is not None:
        equal(done.returncode, status, f"{' '.join(words)}: {done.stdout[-2000:]}")
    return done.stdout


def state(unit):
    return command("systemctl", "is-active", unit, status=None).strip()


def journal(unit, since="-1h"):
    return command("journalctl", "--no-pager", "--output=cat", "--unit", unit, f"--since={since}")


def now():
    return time.strftime("@%s")


def setting(name):
    with open(CONFIG, encoding="utf-8") as file:
        return re.findall(rf"^{name}=(.*)$", file.read(), re.M)[-1]


def client():
    one = Client("http://" + os.uname().nodename, setting("MCP_API_TOKEN"), timeout=300)
    one.conversation = "c" + secrets.token_hex(6)
    return one


def ready():
    """Waits for a warm container of each language."""
    def warm():
        rows = command("sandcgi", "status", status=None)
        found = {name: int(started) + int(loaded) for name, started, loaded in
                 re.findall(r"^ +(python|typescript|bash) +(\d+) +(\d+) ", rows, re.M)}
        return len(found) == 3 and all(found.values())
    wait_until(warm, 120, "a warm container of each language", pause=1)


def reused():
    """(runs that their conversation's container served again, containers that could not be wiped)"""
    found = re.search(r"(\d+) in one that had served their conversation, (\d+) containers", command("sandcgi", "status"))
    return int(found.group(1)), int(found.group(2))


def containers():
    return command("docker", "ps", "--quiet", "--no-trunc", "--filter", "name=sandcgi-").split()


def group(container, name):
    """A file of the container's cgroup."""
    with open(f"{CGROUPS}/docker-{container}.scope/{name}", encoding="ascii") as file:
        return file.read()


def has_inet_tables():
    """Whether the kernel has what the firewall rules of SANDBOX_NETWORK need."""
    return subprocess.run(["nft", "--check", "table inet sandcgi_test { }"], capture_output=True, check=False).returncode == 0


# ---- the units ----

@test("systemd accepts the installed units, and finds the service confined")
def _():
    equal(command("systemd-analyze", "--man=no", "verify", *(f"/lib/systemd/system/{name}" for name in UNITS)), "")
    score = float(re.search(r"exposure level for sandcgi.service: ([0-9.]+)", command("systemd-analyze", "security", "sandcgi")).group(1))
    print(f"    systemd-analyze security: {score}")
    check(score <= 4.0, score)


@test("an image that cannot be built is told, with a log that is there", timeout=300)
def _():
    def failed():
        return re.search("the whole log is in (.*)", journal("sandcgi-runners"))
    path = wait_until(failed, 60, "a build without a network fails", pause=2).group(1)
    with open(path, encoding="utf-8") as file:
        check(file.read(), path)
    command("systemctl", "mask", "--runtime", "--now", "sandcgi-runners")  # not tried again meanwhile
    command("systemctl", "reset-failed", "sandcgi-runners", status=None)


@test("the first request starts the service by its sockets; nothing that it may not do is refused", timeout=300)
def _():
    command("systemctl", "stop", "sandcgi", "sandcgi.socket", "sandcgi-hub.socket")
    command("systemctl", "start", "sandcgi.socket", "sandcgi-hub.socket")
    equal(state("sandcgi"), "inactive")
    since = now()
    equal(client().request("ping").status, 200)
    equal(state("sandcgi"), "active")
    ready()
    said = journal("sandcgi", since)
    contains(said, "using the socket fastcgi that was handed over")
    contains(said, "using the socket hub that was handed over")
    contains(said, "SANDBOX_ROOT has disk quotas of the kernel")
    for word in ("not permitted", "denied", "Read-only", "error "):
        check(word not in said, said)
    failed = re.findall(r"^sandcgi\S*", command("systemctl", "--failed", "--plain", "--no-legend"), re.M)
    equal(failed, [] if has_inet_tables() else ["sandcgi-network.service"], "failed units")


@test("sandcgi prove finds quotas of the kernel, and says that the programs are isolated if each wall holds", timeout=300)
def _():
    said = command("sandcgi", "prove", status=None, seconds=200)
    check(re.search(r"^holds +quotas ", said, re.M), said)
    equal("isolated" in said, not re.search(r"^(missing|untried) ", said, re.M), said)


@test("the log that \"sandcgi status\" and \"sandcgi doctor\" show has no marks of journald")
def _():
    check(not re.search(r"<\d>", command("sandcgi", "status")), command("sandcgi", "status"))


@test("doctor finds cgroup v2 and limits that hold; its timer's service says the same", timeout=300)
def _():
    def limits():
        said = command("sandcgi", "doctor", status=None)
        return said if re.search(r"^ok +limits ", said, re.M) else None
    said = wait_until(limits, 60, "limits are tried", pause=5)
    for line in ("cgroup       version 2", "server ", "engine ", "images ", "disk ", "nginx ", "site ", "denied "):
        check(re.search("^ok +" + line, said, re.M), said)
    check(not re.search("^wrong", said, re.M), said)
    since = now()
    command("systemctl", "start", "sandcgi-doctor.service", seconds=300)
    print("    " + journal("sandcgi-doctor", since).replace("\n", "\n    "))
    contains(command("systemctl", "list-timers", "--all"), "sandcgi-doctor.timer")


# ---- cgroup v2 ----

PROGRAMS = (
    ("python", "print(1)", "1\n"),
    ("python", "import pandas; print(pandas.Series([1, 2]).sum())", "3\n"),
    ("python", "import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig('a.png'); print('drawn')", "drawn\n"),
    ("typescript", "console.log(6 * 7)", "42\n"),
    ("bash", "echo $((6 * 7))", "42\n"),
)


@test("two runs of each kind: the second is in the same container, which nothing makes doubtful", timeout=600)
def _():
    ready()
    since = now()
    for language, code, output in PROGRAMS:
        one, before = client(), reused()
        for _ in range(2):
            result = one.run(code, language, timeout=120)
            equal((result["status"], result["stdout"]), ("ok", output), f"{language} {code}")
            print(f"    {language} {code[:20]!r}: {result['durationMs']} ms, cpu {result.get('cpuMs')} ms, "
                  f"peak {result.get('peakMemoryBytes', 0) / MIB:.1f} MB")
            time.sleep(3)
        after = reused()
        equal((after[0] - before[0], after[1] - before[1]), (1, 0), f"{language}: reused, not wiped; {journal('sandcgi', since)}")
    check("not used again" not in journal("sandcgi", since), journal("sandcgi", since))


@test("the limit of processor time that the first import lifts is back for the program and after it", timeout=300)
def _():
    ready()
    limits = {group(one, "cpu.max") for one in containers()}
    equal(len(limits), 1, limits)
    one = client()
    result = one.run("import numpy; print(open('/sys/fs/cgroup/cpu.max').read())", timeout=120)
    check(result["stdout"].strip() in {text.strip() for text in limits}, (result["stdout"], limits))
    equal({group(one, "cpu.max") for one in containers()}, limits)


@test("1500 MB in a container of less than 1 GB: the program is killed, and the answer says why", timeout=300)
def _():
    one = client()
    result = one.run("b = bytearray(1500 << 20); print(len(b))", timeout=120)
    print("    " + json.dumps({name: result.get(name) for name in ("status", "signal", "exitCode", "peakMemoryBytes", "cpuMs", "outOfMemory")}))
    equal(result["status"], "out_of_memory")
    check(100 * MIB < result["peakMemoryBytes"] <= 1024 * MIB, result)
    equal(one.run("print(2)", timeout=120)["stdout"], "2\n")


@test("peak memory and processor time are the run's own", timeout=300)
def _():
    one = client()
    big = one.run("b = b'x' * (120 << 20); print(len(b))", timeout=120)
    small = one.run("print(3)", timeout=120)
    busy = one.run("import time\nuntil = time.process_time() + 1\nwhile time.process_time() < until: pass", timeout=120)
    for name, result in (("120 MB", big), ("print", small), ("1 s", busy)):
        print(f"    {name}: cpu {result['cpuMs']} ms, peak {result.get('peakMemoryBytes', 0) / MIB:.1f} MB, {result['durationMs']} ms")
    check(big["peakMemoryBytes"] >= 120 * MIB, big)
    check(small.get("peakMemoryBytes", 0) < 100 * MIB, small)
    check(1000 <= busy["cpuMs"] <= 1500 and small["cpuMs"] < 700, (busy, small))


FORKS = """
import errno, os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError as problem:
    print(n, errno.errorcode[problem.errno])
"""


@test("the limit of processes holds", timeout=300)
def _():
    one = client()
    result = one.run(FORKS, timeout=120)
    n, error = result["stdout"].split()
    check(100 < int(n) < 128 and error == "EAGAIN", result)
    equal(one.run("print(4)", timeout=120)["stdout"], "4\n")


@test("a run under way outlives a reload and a restart of the service", timeout=300)
def _():
    for what in ("reload", "restart"):
        ready()
        since, one = now(), client()
        run_id = one.run("sleep 15; echo later", "bash", background=True, timeout=100)["runId"]
        command("systemctl", what, "sandcgi", seconds=60)
        found = wait_until(lambda one=one, run_id=run_id: one.structured("get_run", {"runId": run_id}).get("stdout"), 60, what, pause=1)
        equal(found, "later\n", f"{what}: {journal('sandcgi', since)}")


@test("a reload that is refused fails with its sentence, of the unit, too; sandcgi restart, logs and stop are those of systemd and the journal", timeout=300)
def _():
    with open(CONFIG, "a", encoding="utf-8") as file:
        before, since = file.tell(), now()
        file.write("SANDBOX_NETWORK=perhaps\n")
    try:
        for order in "reload", "restart":
            contains(command("sandcgi", order, status=1), "SANDBOX_NETWORK")
        command("systemctl", "reload", "sandcgi", status=1)
        contains(journal("sandcgi", since), "sandcgi: SANDBOX_NETWORK")
    finally:
        os.truncate(CONFIG, before)
    equal(state("sandcgi"), "active")
    equal(command("sandcgi", "reload"), "reloaded\n")
    invocation = command("systemctl", "show", "--property=InvocationID", "--value", "sandcgi")
    command("sandcgi", "restart")
    check(command("systemctl", "show", "--property=InvocationID", "--value", "sandcgi") != invocation, "systemd has not restarted it")
    wait_until(lambda: "audit=start" in command("sandcgi", "logs", "--lines", "200"), 60, "the journal", pause=1)
    command("sandcgi", "stop")
    equal(state("sandcgi"), "inactive")
    command("systemctl", "start", "sandcgi")
    ready()


@test("metrics count processor time and memory by purpose", timeout=300)
def _():
    ready()
    equal(client().run("echo 5", "bash", timeout=120)["stdout"], "5\n")
    text = client().download(f"http://{setting('SANDCGI_METRICS')}/metrics").body.decode()
    rows = re.findall(r"^(sandcgi_\w*(?:cpu|memory)\w*\{[^}]*purpose[^}]*\}) ([0-9.e+]+)$", text, re.M)
    print("    " + "\n    ".join(" ".join(row) for row in rows))
    check(any("run" in name and float(value) > 0 for name, value in rows), rows)


@test("a persistent sandbox keeps what it has, and its limits hold", timeout=300)
def _():
    one = client()
    made = one.structured("create_sandbox", {"conversationId": one.conversation, "language": "python"})["sandboxId"]

    def execute(text):
        return one.structured("exec", {"sandboxId": made, "commands": [text]})["results"][-1]["stdout"]
    execute("echo kept >/tmp/kept")
    equal(execute("cat /tmp/kept /sys/fs/cgroup/memory.max"), f"kept\n{256 * MIB}\n")
    for text, output in (("x = 41", ""), ("print(x + 1)", "42\n")):
        equal(one.run(text, session=True, timeout=120)["stdout"], output)
    one.structured("close_sandbox", {"sandboxId": made})


@test("removed, the package leaves settings and conversations; purged, nothing", timeout=300)
def _():
    command("dpkg", "--remove", "sandcgi", seconds=200)
    equal([state(one) for one in UNITS[:4]], ["inactive"] * 4)
    check(os.path.exists(CONFIG) and os.listdir("/var/lib/sandcgi/sandboxes"), "settings and conversations")
    equal(containers(), [])
    command("dpkg", "--purge", "sandcgi")
    left = [one for one in ("/etc/sandcgi", "/run/sandcgi", "/var/log/sandcgi", *glob.glob("/etc/systemd/system/*/sandcgi*")) if os.path.exists(one)]
    equal((left, os.listdir("/var/lib/sandcgi")), ([], []), "left after the purge")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    counts = harness.run_tests(parser.parse_args().only, lambda: journal("sandcgi", "-2min")[-3000:])
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

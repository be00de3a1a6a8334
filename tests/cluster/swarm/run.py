#!/usr/bin/env python3
"""A cluster on a real Docker Swarm: four machines of this machine's own (lab.py), nginx/cluster/stack.yml as it is, an edge.

  DOCKER_HOST=… tests/cluster/swarm/run.py BUILD_FOLDER [PHASE…]

BUILD_FOLDER is configured with --prefix=/usr --sysconfdir=/etc --libexecdir=/usr/libexec, without sanitizers. DOCKER_HOST names
an engine that has the image of the runner for Bash. Needs root, dockerd, mmdebstrap. Prints a table of what was measured beside
the goals, and ends with 1 when one of them was missed.
"""
import argparse
import http.client
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(TOP, "tests/e2e"), HERE]

# pylint: disable=wrong-import-position
from harness import Failed  # noqa: E402
from lab import Lab, inspect, run, wait_for  # noqa: E402
from mcp import Client, ToolError  # noqa: E402

RUNNER = "sandcgi-runner-workbench"
PACKAGES = "nginx-light,ca-certificates,libarchive13,libargon2-1,libcjose0,libcurl4,libfcgi0ldbl,libjansson4,libseccomp2,libssl3"
NODES = ("n1", "n2", "n3")
THINK_S = 0.3
PEOPLE = 8
SLOW_S = 12
HEALTH = "bash -c \"exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '\""
# What the Dockerfile says, for an image that is made without a registry.
IMAGES = {
    "sandcgi": ('ENTRYPOINT ["container.sh"]', "ENV SANDCGI_CONFIG=/etc/sandcgi/sandcgi.conf SANDCGI_TOKENS_FILE=/etc/sandcgi/nginx/tokens.map",
                "HEALTHCHECK --interval=1s --timeout=10s --start-period=60s CMD sandcgi status --here --config /etc/sandcgi/sandcgi.conf"),
    "sandcgi-nginx": ('ENTRYPOINT ["nginx", "-c", "/etc/sandcgi/nginx/container.conf", "-g", "daemon off;"]',
                      f"HEALTHCHECK --interval=2s --timeout=5s --start-period=60s CMD {HEALTH}"),
    "sandcgi-edge": ('ENTRYPOINT ["edge.sh"]', "STOPSIGNAL SIGQUIT"),
}


# ---- the images ----

def make_root(build, folder):
    """A root file system with the program, as the archive root.tar."""
    run("make", "-C", build, "install-strip", f"DESTDIR={folder}/installed")
    if not os.path.isdir(f"{folder}/installed/usr/libexec/sandcgi"):
        raise SystemExit(f"{build} is not configured with --prefix=/usr --sysconfdir=/etc --libexecdir=/usr/libexec")
    os.makedirs(f"{folder}/installed/usr/local/bin")
    for script in ("container.sh", "edge.sh"):
        shutil.copy(f"{TOP}/service/{script}", f"{folder}/installed/usr/local/bin/{script}")
        os.chmod(f"{folder}/installed/usr/local/bin/{script}", 0o755)
    run("tar", "-C", f"{folder}/installed", "--owner=0", "--group=0", "-cf", f"{folder}/installed.tar", ".")
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", f"--customize-hook=tar-in {folder}/installed.tar /",
        '--customize-hook=chroot "$1" useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sandcgi',
        "bookworm", "--format=tar", f"{folder}/root.tar.new")
    os.rename(f"{folder}/root.tar.new", f"{folder}/root.tar")


# ---- people ----

class Call:
    def __init__(self, begin, end, error):
        self.begin, self.end, self.error = begin, end, error


class Person(threading.Thread):
    """Makes one call after the other."""

    def __init__(self, cluster, conversation):
        super().__init__(daemon=True)
        self.cluster, self.conversation = cluster, conversation
        self.calls, self.over = [], threading.Event()
        self.begun = None

    def run(self):
        client = self.cluster.client()
        while not self.over.wait(THINK_S):
            begin = self.begun = time.monotonic()
            error = None
            try:
                client.run("echo 1", "bash", self.conversation)
            except (Failed, ToolError, OSError, http.client.HTTPException, ValueError) as problem:
                error = f"{type(problem).__name__}: {problem}"[:300]
            self.begun = None
            self.calls.append(Call(begin, time.monotonic(), error))

    def since(self, moment):
        return [call for call in list(self.calls) if call.end >= moment]


class Crowd:
    """People whose conversations' homes are known."""

    def __init__(self, cluster, n=PEOPLE):
        self.cluster = cluster
        self.people = [Person(cluster, f"person-{secrets.token_hex(6)}") for _ in range(n)]
        for person in self.people:
            person.start()

    def stop(self):
        for person in self.people:
            person.over.set()
        for person in self.people:
            person.join()

    def homes(self):
        return self.cluster.homes([person.conversation for person in self.people])

    def failed_since(self, moment):
        return [call for person in self.people for call in person.since(moment) if call.error]


def p95(values):
    return statistics.quantiles(values, n=20)[-1] if len(values) > 19 else max(values, default=0)


# ---- the cluster ----

class Cluster:
    def __init__(self, lab):
        self.lab = lab
        self.manager = lab["m"]
        self.url = f"http://{self.manager.address}"
        self.token = secrets.token_hex(24)

    def client(self, timeout=60):
        return Client(self.url, self.token, timeout=timeout)

    def make_swarm(self):
        address = self.manager.address
        self.manager.docker("swarm", "init", "--advertise-addr", address, "--listen-addr", f"{address}:2377")
        token = self.manager.docker("swarm", "join-token", "-q", "worker")
        for machine in self.lab.machines[1:]:
            machine.docker("swarm", "join", "--token", token, "--advertise-addr", machine.address, f"{address}:2377")
        for name, value in (("FILE_SECRET", secrets.token_hex(32)), ("MCP_API_TOKEN", self.token), ("SANDCGI_EDGE_SECRET", secrets.token_hex(32))):
            subprocess.run(["docker", "-H", self.manager.host, "secret", "create", name, "-"], input=value, text=True, check=True, capture_output=True)

    def label(self, name, value="node"):
        self.manager.docker("node", "update", "--label-add", f"sandcgi={value}", name)

    def deploy(self, tag="latest"):
        self.manager.docker("stack", "deploy", "--resolve-image", "never", "-c", f"{TOP}/nginx/cluster/stack.yml", "sandcgi",
                            env=os.environ | {"PUBLIC_BASE_URL": self.url, "SANDCGI_TAG": tag, "SANDBOX_NETWORK": "none"})

    def answers(self):
        try:
            return self.client(5).http("GET", "/readyz").status == 200
        except OSError:
            return False

    def ready(self, name):
        try:
            return Client(f"http://{self.lab[name].address}:8080", timeout=5).http("GET", "/readyz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def listed(self):
        """The nodes that the edge has, by what its process has rendered."""
        edge = self.manager.docker("ps", "-q", "--filter", "label=com.docker.swarm.service.name=sandcgi_edge").split("\n")[0]
        text = self.manager.docker("exec", edge, "cat", "/etc/sandcgi/nodes.conf", check=False)
        return [line[3:].split() for line in text.splitlines() if line.startswith("#: ")]

    def homes_listed(self):
        return [row[0] for row in self.listed() if row[-1] != "leaving"]

    def homes(self, conversations):
        """The node that has each conversation."""
        found = {}
        client = self.client()
        for conversation in conversations:
            client.run(f": >name-{conversation}", "bash", conversation)
            for name in NODES:
                root = self.lab[name].sandboxes
                if any(f"name-{conversation}" in os.listdir(f"{root}/{folder}") for folder in os.listdir(root) if len(folder) == 64):
                    found.setdefault(conversation, []).append(name)
        return {conversation: names[0] for conversation, names in found.items() if len(names) == 1}


class Table:
    def __init__(self):
        self.missed = 0

    def row(self, what, measured, goal, met):
        self.missed += not met
        print(f"| {what} | {measured} | {goal} | {'yes' if met else 'NO'} |", flush=True)


# ---- phases ----

def of_node(crowd, homes, name):
    return [person for person in crowd.people if homes.get(person.conversation) == name]


def crowd_on(cluster, name):
    """A crowd of which some have their home on that node."""
    crowd = Crowd(cluster)
    time.sleep(3)
    homes = crowd.homes()
    while not of_node(crowd, homes, name):
        person = Person(cluster, f"person-{secrets.token_hex(6)}")
        crowd.people.append(person)
        person.start()
        time.sleep(1)
        homes = crowd.homes()
    return crowd, homes


def phase_silence(cluster, table):
    crowd, homes = crowd_on(cluster, "n3")
    time.sleep(3)
    moment = time.monotonic()
    cluster.lab["n3"].silence()
    time.sleep(18)
    struck = of_node(crowd, homes, "n3")
    failed = crowd.failed_since(moment)
    hung = max((call.end - moment for call in failed), default=0)
    new = [call.end - call.begin for person in struck for call in person.since(moment) if not call.error and call.begin > moment + 2]
    waiting = [person for person in crowd.people if person.begun and time.monotonic() - person.begun > 15]
    cluster.lab["n3"].silence(False)
    wait_for(lambda: cluster.ready("n3"), 90, "n3 is ready again", 0.5)
    time.sleep(5)
    crowd.stop()
    table.row("silence: calls in flight end after", f"{hung:.1f} s ({len(failed)} failed)", "≤ 15 s", hung <= 15 and not waiting)
    table.row("silence: new calls of its conversations, p95", f"{p95(new) * 1000:.0f} ms", "≤ 1 s", bool(new) and p95(new) <= 1)


def slow_runs(cluster, n):
    """Runs of 12 s, each in a conversation of its own; what they answered."""
    answers = []

    def one():
        conversation = f"slow-{secrets.token_hex(6)}"
        try:
            result = cluster.client(90).run(f"sleep {SLOW_S}; echo end", "bash", conversation, timeout=60)
            answers.append(result["stdout"].strip())
        except (Failed, OSError, http.client.HTTPException) as problem:
            answers.append(f"{type(problem).__name__}: {problem}"[:200])
    threads = [threading.Thread(target=one, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    return threads, answers


def updated(cluster, tag):
    state = inspect(cluster.manager, "service", "sandcgi_sandcgi")[0]
    return state["Spec"]["TaskTemplate"]["ContainerSpec"]["Image"].endswith(tag) and state.get("UpdateStatus", {}).get("State") == "completed"


def phase_update(cluster, table):
    for machine in cluster.lab.machines:
        for name in IMAGES:
            machine.docker("tag", f"localhost:1/{name}:latest", f"localhost:1/{name}:next")
    crowd = Crowd(cluster)
    time.sleep(3)
    homes = crowd.homes()
    threads, answers = slow_runs(cluster, 6)
    time.sleep(2)
    moment = time.monotonic()
    cluster.manager.docker("service", "update", "--detach", "--no-resolve-image", "--image", "localhost:1/sandcgi:next", "sandcgi_sandcgi")
    more = []
    while not updated(cluster, ":next") and time.monotonic() < moment + 180:
        time.sleep(4)
        more.append(slow_runs(cluster, 1))
    took = time.monotonic() - moment
    for thread in threads + [thread for group, _ in more for thread in group]:
        thread.join()
    answers += [answer for _, some in more for answer in some]
    time.sleep(2)
    crowd.stop()
    failed, wrong = crowd.failed_since(moment), [answer for answer in answers if answer != "end"]
    moved = sum(homes.get(name) != home for name, home in crowd.homes().items())
    for text in [call.error for call in failed][:3] + wrong[:3]:
        print(f"# {text}", flush=True)
    short = sum(len(person.since(moment)) for person in crowd.people)
    table.row("update of all nodes: failed", f"{len(failed)} of {short} short, {len(wrong)} of {len(answers)} of {SLOW_S} s, {took:.0f} s", "0", not failed and not wrong)
    table.row("update of all nodes: conversations moved", f"{moved} of {len(homes)}", "0", moved == 0)


def phase_drain(cluster, table):
    crowd, homes = crowd_on(cluster, "n1")
    moment = time.monotonic()
    cluster.manager.docker("node", "update", "--availability", "drain", "n1")
    time.sleep(10)
    struck = of_node(crowd, homes, "n1")
    failed = crowd.failed_since(moment)
    listed = cluster.homes_listed()
    crowd.stop()
    for call in failed[:3]:
        print(f"# {call.error}", flush=True)
    table.row("drain: calls that failed", f"{len(failed)} ({len(struck)} conversations had their home there)", "0", not failed)
    table.row("drain: the edge's nodes", " ".join(listed), "n2 n3", listed == ["n2", "n3"])
    cluster.manager.docker("node", "update", "--availability", "active", "n1")


PHASES = {"update": phase_update, "silence": phase_silence, "drain": phase_drain}


def begin(lab, build, folder):
    root = f"{folder}/root.tar"
    if not os.path.exists(root):
        make_root(build, folder)
        run("docker", "image", "save", "-o", f"{folder}/runner.tar", RUNNER)
    print(f"# {time.monotonic() - START:.0f} s: the images are made", flush=True)
    lab.begin()
    cluster = Cluster(lab)
    cluster.make_swarm()
    lab.images(root, IMAGES)
    for name in NODES:
        lab[name].docker("load", "-i", f"{folder}/runner.tar")
    print(f"# {time.monotonic() - START:.0f} s: the machines have them", flush=True)
    for name in NODES:
        cluster.label(name)
    cluster.deploy()
    wait_for(cluster.answers, 120, "the edge answers", 1)
    for name in NODES:
        wait_for(lambda one=name: cluster.ready(one), 60, f"{name} is ready")
    wait_for(lambda: cluster.homes_listed() == list(NODES), 60, "the edge has all nodes")
    print(f"# {time.monotonic() - START:.0f} s: the stack is deployed", flush=True)
    return cluster


def explain(lab):
    for machine in lab.machines:
        print(f"# {machine.name}: {machine.docker('ps', '-a', check=False)}")
        for container in machine.docker("ps", "-aq", "--filter", "label=com.docker.swarm.service.name", check=False).split():
            print(subprocess.run(["docker", "-H", machine.host, "logs", "--tail", "12", container], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, check=False).stdout)
    print(lab["m"].docker("service", "ps", "--no-trunc", "sandcgi_front", "sandcgi_sandcgi", "sandcgi_edge", check=False))


START = time.monotonic()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("phase", nargs="*", help=f"of {' '.join(PHASES)}; default: all")
    parser.add_argument("--archives", metavar="FOLDER", help="where the images' archives are made once, for another run")
    words = parser.parse_args()
    missing = [tool for tool in ("dockerd", "docker", "mmdebstrap", "nsenter", "unshare", "ip", "iptables") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"skipped: needs root{' and ' + ' '.join(missing) if missing else ''}")
        return 77
    lab, table = Lab(("m", *NODES)), Table()
    try:
        with tempfile.TemporaryDirectory(prefix="sandcgi-swarm-", dir="/var/tmp") as folder:
            cluster = begin(lab, os.path.abspath(words.build), words.archives or folder)
        print("| what | measured | goal | met |\n|---|---|---|---|", flush=True)
        for name in words.phase or PHASES:
            PHASES[name](cluster, table)
    except BaseException:
        explain(lab)
        raise
    finally:
        lab.remove()
    print(f"# {time.monotonic() - START:.0f} s, {table.missed} goals missed; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())

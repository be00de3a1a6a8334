"""Machines for a Swarm: each a Docker Engine with a network, processes, mounts and a name of its own, joined by a bridge.

A machine's first process ends all of it when it is killed. Everything below is taken away at the end.
"""
import json
import os
import shutil
import signal
import subprocess
import time

NET = "10.77.0"
PREFIX = "sandcgi-swarm"
LAB = f"/var/lib/{PREFIX}"
BRIDGE = "sandcgi-swarm0"

# The machine's init: its own /run and /var/lib, so that every path in a stack's file is its own; orphans are reaped.
INIT = r"""
set -e
name=$1 lab=$2
hostname "$name"
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$lab/$name/run" /run # before what hides the lab
mount --bind "$lab/$name/lib" /var/lib
mkdir -p /var/lib/sandcgi/sandboxes
trap : TERM
dockerd --bip 172.31.0.1/24 -H unix:///run/docker.sock >>/run/dockerd.log 2>&1
"""


def run(*words, check=True, **more):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout.strip()


def wait_for(probe, seconds, what, pause=0.2):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = probe()
        if value:
            return value
        time.sleep(pause)
    raise RuntimeError(f"not within {seconds} s: {what}")


class Machine:
    def __init__(self, name, number):
        self.name = name
        self.address = f"{NET}.{number}"
        self.namespace = f"{PREFIX}-{name}"
        self.link = f"scsw{number}"  # on the bridge; at most 15 characters
        self.process = None
        self.root = f"{LAB}/{name}"

    @property
    def host(self):
        return f"unix://{self.root}/run/docker.sock"

    @property
    def sandboxes(self):
        return f"{self.root}/lib/sandcgi/sandboxes"

    def add_network(self):
        run("ip", "netns", "add", self.namespace)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        run("ip", "link", "set", self.link, "master", BRIDGE, "up")
        for words in (("addr", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up"), ("link", "set", "lo", "up"),
                      ("route", "add", "default", "via", f"{NET}.1")):
            run("ip", "-n", self.namespace, *words)

    def start(self):
        for folder in ("lib", "run"):
            os.makedirs(f"{self.root}/{folder}", exist_ok=True)
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child",
             "bash", "-c", INIT, "bash", self.name, LAB], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self, seconds=20):
        wait_for(lambda: subprocess.run(["docker", "-H", self.host, "version"], capture_output=True, check=False).returncode == 0, seconds,
                 f"the engine of {self.name}")

    def docker(self, *words, check=True, **more):
        return run("docker", "-H", self.host, *words, check=check, **more)

    def silence(self, silent=True):
        """Its cable: nobody is told anything."""
        run("ip", "link", "set", self.link, "down" if silent else "up")

    def end(self):
        if self.process and self.process.poll() is None:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)
            self.process.wait()
        run("ip", "netns", "del", self.namespace, check=False)
        run("ip", "link", "del", self.link, check=False)


class Lab:
    def __init__(self, names):
        self.machines = [Machine(name, number) for number, name in enumerate(names, 10)]

    def __getitem__(self, name):
        return next(machine for machine in self.machines if machine.name == name)

    def begin(self):
        self.remove()
        os.makedirs(LAB)
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for words in self._rules():
            run("iptables", "-w", "10", "-I", *words)
        for machine in self.machines:
            machine.add_network()
            machine.start()
        for machine in self.machines:
            machine.wait()

    @staticmethod
    def _rules():
        """Another engine may have closed forwarding; bridged frames pass it where br_netfilter is loaded."""
        return (("FORWARD", "-i", BRIDGE, "-j", "ACCEPT"), ("FORWARD", "-o", BRIDGE, "-j", "ACCEPT"))

    def remove(self):
        """Also what an interrupted run has left."""
        for machine in self.machines:
            machine.end()
        for words in self._rules():
            run("iptables", "-w", "10", "-D", *words, check=False)
        run("ip", "link", "del", BRIDGE, check=False)
        if os.path.isdir(LAB):
            shutil.rmtree(LAB, ignore_errors=True)

    def images(self, archive, lines):
        """The root as an image of each name, with those lines of a Dockerfile, on all machines one after the other: the disk is busy."""
        for machine in self.machines:
            machine.docker("import", archive, "localhost:1/root:latest")
            for name, rest in lines.items():
                subprocess.run(["docker", "-H", machine.host, "build", "-q", "-t", f"localhost:1/{name}:latest", "-"], check=True, text=True,
                               capture_output=True, input="\n".join(("FROM localhost:1/root", *rest)), env=os.environ | {"DOCKER_BUILDKIT": "0"})


def inspect(machine, what, *names):
    return json.loads(machine.docker(what, "inspect", *names))

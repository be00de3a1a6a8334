"""The blows: each makes one thing of the server, or below it, fail, and undoes that when it is not the server's part to do so."""
import contextlib
import os
import resource
import signal
import socket
import struct
import time

import engine
import procs
from harness import Failed, Skip, wait_until


class Stage:
    """A site, and what an act needs besides."""

    def __init__(self, site, chance, long):
        self.site, self.chance = site, chance
        self.long = long  # ten minutes, not one
        self.clock = f"{site.folder}/clock"
        self.set_clock(0)

    def set_clock(self, seconds):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as file:
            file.write(struct.pack("q", seconds))

    def victims(self, kind):
        site = self.site
        found = {"worker": site.workers, "supervisor": site.run_children, "broker": lambda: [site.broker()],
                 "hub": lambda: [site.hub_process()], "housekeeper": lambda: [site.housekeeper()]}[kind]()
        return [pid for pid in found if pid]

    def victim(self, kind):
        found = self.victims(kind)
        return self.chance.choice(found) if found else None


def _signal(pid, number):
    with contextlib.suppress(ProcessLookupError, TypeError):
        os.kill(pid, number)


def kill(kind):
    def act(stage):
        _signal(stage.victim(kind), signal.SIGKILL)
    act.__name__ = f"kill -9 {kind}"
    return act


def starts(site):
    """False: it has refused to. Until it has a broker, workers of the one before may be those that answer."""
    process = site.start_server()
    wait_until(lambda: process.poll() is not None or site.broker(), 30, "a broker, or the end of the server")
    try:
        site.wait_healthy(10)
        return True
    except Failed:
        return False


def kill_master(stage):
    """The test starts it again, as an init system would: until it stays, since workers of before may still answer their calls."""
    stage.site.process.kill()
    stage.site.process.wait()
    wait_until(lambda: starts(stage.site), 30, "a new master")


def stop(kind):
    def act(stage):
        pid = stage.victim(kind)
        _signal(pid, signal.SIGSTOP)
        time.sleep(3)
        _signal(pid, signal.SIGCONT)
    act.__name__ = f"stop {kind} for 3 s"
    return act


def reload(stage):
    _signal(stage.site.process.pid, signal.SIGHUP)


def reload_nginx(stage):
    for _ in range(5):
        _signal(stage.site.nginx_process.pid, signal.SIGHUP)
        time.sleep(1)


def kill_engine(stage):
    engine.kill()
    time.sleep(1)
    engine.start()


def freeze_engine(stage):
    family = [engine.pid(), *procs.children(engine.pid())]
    for pid in family:
        _signal(pid, signal.SIGSTOP)
    time.sleep(20 if stage.long else 6)
    for pid in family:
        _signal(pid, signal.SIGCONT)


def fill_disk(stage):
    """The sandboxes are on a file system of their own, see run.py."""
    name = f"{stage.site.root}/.filler"
    with open(name, "wb") as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
    with contextlib.suppress(OSError):
        time.sleep(3)
    os.unlink(name)


def _limit(kind, what, size):
    def act(stage):
        pid = stage.victim(kind)
        with contextlib.suppress(OSError, TypeError):
            old = resource.prlimit(pid, what)
            resource.prlimit(pid, what, (size(pid), old[1]))
            time.sleep(3)
            resource.prlimit(pid, what, old)
    act.__name__ = f"limit {kind} to what it has of {'descriptors' if what == resource.RLIMIT_NOFILE else 'memory'}"
    return act


def few_descriptors(kind):
    return _limit(kind, resource.RLIMIT_NOFILE, lambda pid: len(procs.open_files(pid)) + 1)


def little_memory(kind):
    limit = _limit(kind, resource.RLIMIT_AS, lambda pid: int(procs.status(pid, "VmSize").split()[0]) * 1024 + (1 << 20))

    def act(stage):
        with open(stage.site.binary, "rb") as file:
            if b"__asan_init" in file.read():
                raise Skip("AddressSanitizer hangs when it has no memory itself")
        limit(stage)
    act.__name__ = limit.__name__
    return act


def clock_back(stage):
    stage.set_clock(-3600)
    time.sleep(4)
    stage.set_clock(0)


def half_open(stage):
    """Clients that begin a request, or TLS, and say nothing more."""
    held = []
    for n in range(200):
        with contextlib.suppress(OSError):
            one = socket.create_connection(("127.0.0.1", stage.site.http_port if n % 2 else stage.site.https_port), 5)
            held.append(one)
            one.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{" if n % 4 == 1 else b"\x16\x03")
    time.sleep(3)
    for one in held:
        one.close()


def crowd(stage):
    """Connections, each with a request to /healthz."""
    held = []
    for _ in range(10000 if stage.long else 1000):
        with contextlib.suppress(OSError):
            one = socket.socket()
            held.append(one)
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", stage.site.http_port))
    time.sleep(2)
    for one in held:
        with contextlib.suppress(OSError):
            one.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    time.sleep(2)
    for one in held:
        one.close()


def wait_done(moment, seconds, done):
    """Polls done() until it is true; the seconds from the moment, None when it stays false."""
    while time.monotonic() < moment + seconds:
        if done():
            return time.monotonic() - moment
        time.sleep(0.05)
    return None


# (act, seconds within which right answers are to come again once it is over)
OURS, ENGINE = 1, 10
ACTS = (
    (kill("worker"), OURS), (kill("supervisor"), OURS), (kill("broker"), OURS), (kill("housekeeper"), OURS), (kill("hub"), OURS),
    (kill_master, OURS), (stop("worker"), OURS), (stop("supervisor"), OURS), (stop("broker"), OURS), (stop("hub"), OURS),
    (reload, OURS), (reload_nginx, OURS), (kill_engine, ENGINE), (freeze_engine, ENGINE), (fill_disk, OURS),
    (few_descriptors("worker"), OURS), (few_descriptors("broker"), OURS), (few_descriptors("hub"), OURS),
    (little_memory("worker"), OURS), (little_memory("broker"), OURS), (clock_back, OURS), (half_open, OURS), (crowd, OURS),
)

#!/usr/bin/env python3
"""What a cluster of many nodes needs, computed from parts that were measured on one machine or three.

The parts are arguments; their defaults are today's figures. The ring is nginx's own function (ngx_http_upstream_hash_module):
--nginx asks an nginx of this machine for the same keys and compares. Prints Markdown tables.
"""
import argparse
import bisect
import os
import random
import subprocess
import tempfile
import time
import urllib.request
import zlib

SEED = 18  # the same tables each time
POINTS = 160  # of a server of weight 1


# ---- nginx's ring ----

class Ring:
    def __init__(self, servers, weight):
        points = {}
        for name in servers:
            host, _, port = name.rpartition(":")
            base = zlib.crc32(host.encode() + b"\0" + port.encode())
            value = 0
            for _ in range(weight * POINTS):
                value = zlib.crc32(value.to_bytes(4, "little"), base)
                points.setdefault(value, name)
        self.hashes = sorted(points)
        self.names = [points[value] for value in self.hashes]

    def home(self, key):
        at = bisect.bisect_left(self.hashes, zlib.crc32(key.encode()))
        return self.names[at % len(self.names)]

    def shares(self):
        """Part of all keys of each server."""
        found, before = {}, self.hashes[-1] - 2**32
        for value, name in zip(self.hashes, self.names):
            found[name] = found.get(name, 0) + (value - before) / 2**32
            before = value
        return found


def servers_of(n):
    return [f"10.0.{i // 250}.{i % 250 + 1}:8080" for i in range(n)]


def imbalance(ring, n, active, rate):
    """The busiest node's load over the mean, of so many active conversations a node."""
    load = {}
    for _ in range(active * n):
        name = ring.home(f"default:{random.getrandbits(96):024x}")
        load[name] = load.get(name, 0) + rate()
    return max(load.values()) * n / sum(load.values())


def compare_with_nginx(servers, weight, n=300):
    """How many of n keys an nginx of this machine gives to another server than the ring here does."""
    ring = Ring(servers, weight)
    lines = "".join(f"server {name} weight={weight} max_fails=0;" for name in servers)
    with tempfile.TemporaryDirectory(prefix="sandcgi-ring-") as folder:
        with open(f"{folder}/nginx.conf", "w", encoding="ascii") as out:
            out.write(f"daemon off; pid {folder}/pid; error_log /dev/null; events {{}} http {{ access_log off; client_body_temp_path {folder}/b; "
                      f"proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; scgi_temp_path {folder}/s; uwsgi_temp_path {folder}/u; "
                      f"upstream ring {{ hash $arg_key consistent; {lines} }} server {{ listen 127.0.0.1:18919; location / {{ "
                      "proxy_pass http://ring; proxy_next_upstream off; proxy_connect_timeout 1ms; error_page 502 504 = @told; } "
                      "location @told { return 200 $upstream_addr; } } }")
        process = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                if os.path.exists(f"{folder}/pid"):
                    break
                time.sleep(0.05)
            wrong = 0
            for i in range(n):
                with urllib.request.urlopen(f"http://127.0.0.1:18919/?key=k{i}", timeout=10) as answer:
                    wrong += answer.read().decode() != ring.home(f"k{i}")
            return wrong
        finally:
            process.terminate()
            process.wait()


# ---- the tables ----

def table(title, head, rows):
    print(f"\n**{title}**\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def hash_tables(sizes, weight):
    rows = []
    for n in sizes:
        ring = Ring(servers_of(n), weight)
        shares = ring.shares()
        more = Ring(servers_of(n + 1), weight)
        keys = [f"default:{random.getrandbits(96):024x}" for _ in range(20000)]
        moved = sum(ring.home(key) != more.home(key) for key in keys) / len(keys)
        cells = [f"{imbalance(ring, n, active, lambda: 1):.2f}" for active in (10, 100, 1000)]
        rows.append([str(n), f"{max(shares.values()) * n:.2f}", *cells, f"{moved:.3f} ({moved * (n + 1):.2f}/N)"])
    table(f"Hash, weight {weight}: busiest node ÷ mean", ["nodes", "share of keys", "10 active conversations a node", "100", "1000",
                                                           "moved by a node more"], rows)


def miss(rate, refill_s, waiting):
    """The chance that a start finds no waiting container: as many starts as wait, or more, within the time that one takes."""
    mean, term, below = rate * refill_s, 2.718281828459045 ** -(rate * refill_s), 0.0
    for k in range(waiting):
        below += term
        term *= mean / (k + 1)
    return 1 - below


def edge_table(p, sizes):
    rows = []
    for n in sizes:
        calls = n * p.cores * p.runs_per_core * p.calls_per_run
        mixed = p.redirected * p.redirect_us + (1 - p.redirected) * p.header_us
        kept = calls * (mixed + p.new_tls * p.tls_us) / 1e6
        every = calls * (mixed + p.tls_us) / 1e6
        rows.append([str(n), f"{calls:.0f}", f"{kept:.2f}", f"{every:.1f}", f"{calls * p.call_kib * 1024 * 8 / 1e9:.2f}"])
    table(f"Edge: processors, {p.redirected:.0%} of the calls redirected", ["nodes", "calls/s", f"{p.new_tls:.0%} on a new TLS connection",
                                                                          "every one", f"Gbit/s at {p.call_kib} KiB a call"], rows)


def store_table(p, sizes):
    rows = []
    for n in sizes:
        runs = n * p.cores * p.runs_per_core
        puts = runs * p.writing * p.files_per_run
        rows.append([str(n), f"{runs:.0f}", f"{puts:.0f}", f"{puts + runs * p.writing:.0f}", f"{puts * p.file_kib / 1024:.0f}"])
    table(f"Store: {p.writing:.0%} of the runs change {p.files_per_run} files", ["nodes", "runs/s", "files/s", "with manifests, writes/s", "MiB/s"], rows)


def pool_table(p):
    rows = []
    for waiting in (2, 4, 6):
        size = waiting * (p.started_mib + p.shim_mib)
        loaded = waiting * (p.loaded_mib + p.shim_mib)
        rows.append([str(waiting), f"{miss(p.new_per_s, p.refill_s, waiting):.2%}", f"{size:.0f}", f"{loaded:.0f}"])
    table(f"Pool of a node, {p.new_per_s} new conversations/s, refilled in {p.refill_s} s", ["waiting containers", "chance of a cold start",
                                                                                            "MiB, interpreters started", "MiB, libraries loaded"], rows)


PARTS = (
    ("cores", 8, "processors of a node"),
    ("runs-per-core", 7.0, "runs a second and processor, with a start each (142 ms)"),
    ("calls-per-run", 1.0, "calls of clients for each run"),
    ("header-us", 50.0, "processor time of an edge: a call with a header, TLS kept open, µs"),
    ("redirect-us", 83.0, "the same of a call that is redirected"),
    ("tls-us", 850.0, "a new TLS connection"),
    ("redirected", 1.0, "part of the calls that are redirected"),
    ("new-tls", 0.05, "part of the calls on a new connection"),
    ("call-kib", 4, "bytes of a call and its answer, KiB"),
    ("writing", 0.2, "part of the runs that change files"),
    ("files-per-run", 1.5, "files that such a run changes"),
    ("file-kib", 64, "their mean size, KiB"),
    ("new-per-s", 2.0, "new conversations a second on a node"),
    ("refill-s", 0.15, "until a waiting container is replaced"),
    ("started-mib", 13.0, "memory of a waiting container, interpreter started"),
    ("loaded-mib", 75.0, "the same with libraries loaded"),
    ("shim-mib", 3.0, "the engine's process beside it"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value, text in PARTS:
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"{text} ({value})")
    parser.add_argument("--nodes", type=int, nargs="+", default=[3, 10, 100])
    parser.add_argument("--weight", type=int, default=10, help="of each server in the groups (10)")
    parser.add_argument("--nginx", action="store_true", help="compare the ring with nginx's")
    words = parser.parse_args()
    random.seed(SEED)
    if words.nginx:
        wrong = compare_with_nginx([f"127.0.0.{i}:9" for i in range(1, 8)], words.weight)
        print(f"nginx gives {wrong} of 300 keys to another server than this ring")
        if wrong:
            return 1
    hash_tables(words.nodes, words.weight)
    edge_table(words, words.nodes)
    store_table(words, words.nodes)
    pool_table(words)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

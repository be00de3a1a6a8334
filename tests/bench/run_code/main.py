#!/usr/bin/env python3
"""What run_code costs beside everything else that could run the same program. Started by run_code.sh."""
import argparse
import os
import platform
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../e2e")]

# pylint: disable=wrong-import-position
import commands  # noqa: E402
import engine  # noqa: E402
import harness  # noqa: E402
import latency  # noqa: E402
import live  # noqa: E402
import loads  # noqa: E402
import rest  # noqa: E402
from servers import World  # noqa: E402
from stack import Target  # noqa: E402
from work import WORKS  # noqa: E402

PARTS = {"latency": latency.part, "throughput": loads.throughput, "bursts": loads.bursts, "live": live.part,
         "commands": commands.part}


def parse():
    parser = argparse.ArgumentParser(prog="tests/bench/run_code.sh", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (may be given several times)")
    parser.add_argument("--work", choices=[work.key for work in WORKS], action="append", help="single runs of this only (as often as you like)")
    parser.add_argument("--way", metavar="TEXT", action="append", default=[],
                        help="single runs only in the ways whose title holds TEXT (several times): fewer, so more rounds")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of single runs (%(default)s)")
    parser.add_argument("--seconds", type=int, default=10, help="length of each closed loop (%(default)s)")
    parser.add_argument("--bursts", type=int, default=3, help="how often all warm containers are claimed at once (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="5 rounds, loops of 5 s, one burst")
    parser.add_argument("--peer", metavar="URL", help="another MCP server with a run_code tool, measured on the same work")
    parser.add_argument("--peer-token", metavar="TOKEN", help="its bearer token", default="")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.bursts = 5, 5, 1
    options.works = [work for work in WORKS if work.key in (options.work or [work.key])]
    return options


def print_place():
    with open("/proc/loadavg", encoding="ascii") as file:
        load = " ".join(file.read().split()[:3])
    version = engine.api("GET", "/version")
    print(f"Machine: {platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}; load before: {load}")
    print(f"Engine: {version['Version']} at {engine.host()}, Python {image_version('python')}, {image_version('typescript')}\n")


def image_version(language):
    return (engine.image(engine.WORKBENCH) or {}).get("Config", {}).get("Labels", {}).get(f"sandbox.version.{language}", "is missing")


def main():
    options = parse()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        print_place()
        world = World(Target(options.peer, options.peer_token).introduce() if options.peer else None)
        for part in options.part or PARTS:
            PARTS[part](world, options)
    finally:
        harness.close()
        rest.sweep()


if __name__ == "__main__":
    main()

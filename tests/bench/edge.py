#!/usr/bin/env python3
"""What an edge adds to a call: to the node itself, through the edge with the header that names the conversation, and sent on by a node
that is not its home. The three are interleaved. DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to measure.

  tests/bench/edge.py [--calls N]
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e"), os.path.join(os.path.dirname(HERE), "cluster")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
from cluster import Cluster, named  # noqa: E402
from mcp import Client  # noqa: E402

LEGACY = {"MCP-Protocol-Version": "2025-11-25"}  # its headers are not compared with the arguments, so a wrong one can be sent


def other_home(cluster, client, home):
    """A conversation of another node: its name as the header sends a call there first."""
    for n in range(64):
        client.structured("write_file", {"conversationId": f"other-{n}", "filename": f"home-other-{n}", "text": "x"})
        if cluster.homes([f"other-{n}"])[f"other-{n}"] != [home.name]:
            return f"other-{n}"
    raise harness.Failed("all conversations have one home")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="of each kind")
    calls = parser.parse_args().calls
    try:
        cluster = Cluster(("n1", "n2", "n3")).start()
        edge = Client(f"http://localhost:{cluster.edge.http_port}", cluster.token)
        edge.structured("write_file", {"conversationId": "one", "filename": "home-one", "text": "x"})
        home = cluster.node(cluster.homes(["one"])["one"][0])
        ways = {"the node itself": (home.direct(), {}),
                "edge, header": (edge, named("one")),
                "edge, sent on": (edge.fresh(), named(other_home(cluster, edge, home)))}
        times = {way: [] for way in ways}
        before = sum(node.answers(421) for node in cluster.nodes)
        for n in range(calls + 50):
            for way, (client, headers) in ways.items():
                begin = time.perf_counter()
                client.result("tools/call", {"name": "list_files", "arguments": {"conversationId": "one"}}, LEGACY | headers)
                if n >= 50:
                    times[way].append(1000 * (time.perf_counter() - begin))
        harness.equal(sum(node.answers(421) for node in cluster.nodes) - before, calls + 50, "calls that were sent on")
        direct = statistics.median(times["the node itself"])
        print(f"list_files, {calls} calls of each kind, interleaved, plain HTTP on loopback, three nodes; ms")
        for way, all_ in times.items():
            print(f"  {way:16} p50 {statistics.median(all_):.2f}  p95 {statistics.quantiles(all_, n=20)[18]:.2f}  "
                  f"added p50 {statistics.median(all_) - direct:+.2f}")
    finally:
        harness.close()


if __name__ == "__main__":
    main()

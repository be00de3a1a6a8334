#!/usr/bin/env python3
"""What an edge adds to a call: to the node itself, through the edge with the header that names the conversation, and sent on by a node
that is not its home. The three are interleaved. Then what a warm run takes at a node and at a server without a name, interleaved, too.
Waits until their containers are warm. DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to measure.

  tests/bench/edge.py [--calls N] [--runs N]
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
import sites  # noqa: E402
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


def show(times, base):
    """A line for each way; base is the one that the others are compared with."""
    first = statistics.median(times[base])
    for way, all_ in times.items():
        print(f"  {way:24} p50 {statistics.median(all_):.2f}  p95 {statistics.quantiles(all_, n=20)[18]:.2f}  "
              f"added p50 {statistics.median(all_) - first:+.2f}  x {statistics.median(all_) / first:.2f}")


def compare_runs(cluster, runs):
    """The same server with and without SANDCGI_NODE, each asked directly, in one conversation."""
    node = cluster.nodes[0]
    plain = sites.Site({name: value for name, value in cluster.settings.items() if name != "SANDCGI_EDGE_SECRET"}, nginx=node.nginx_values)
    plain.token = cluster.token
    harness.at_end(plain.stop)
    plain.start()
    clients = {"a server without a name": Client(f"http://localhost:{plain.http_port}", cluster.token), "a node": node.direct()}
    times = {way: [] for way in clients}
    for n in range(runs + 10):
        for way, client in clients.items():
            begin = time.perf_counter()
            client.structured("run_code", {"conversationId": "runs", "language": "bash", "code": "true"})
            if n >= 10:
                times[way].append(1000 * (time.perf_counter() - begin))
            time.sleep(0.05)  # its container is ready again
    print(f"run_code of bash, {runs} runs of each kind in one conversation, interleaved; ms")
    show(times, "a server without a name")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="of each kind")
    parser.add_argument("--runs", type=int, default=200, help="of each kind")
    options = parser.parse_args()
    calls = options.calls
    try:
        cluster = Cluster(("n1", "n2", "n3"), {"SANDBOX_WARM": "bash=1"}).start()
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
        print(f"list_files, {calls} calls of each kind, interleaved, plain HTTP on loopback, three nodes; ms")
        show(times, "the node itself")
        compare_runs(cluster, options.runs)
    finally:
        harness.close()


if __name__ == "__main__":
    main()

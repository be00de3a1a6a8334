"""What one request may cost in memory and what is given back; what a tenant's results take on the disk."""
import contextlib
import os
import re
import time

import procs
import runs
import sites
from harness import IS_ROOT, Skip, check, contains, equal, in_time, test, wait_until
from mcp import end_run

MB = 1 << 20
WORKERS = "2"


def _site():
    return sites.with_settings(binary=sites.plain_binary(), SANDCGI_WORKERS=WORKERS, SANDBOX_FILE_MAX="11m", SANDBOX_RESULTS_MAX="8m")


def _memory(site):
    return max(map(procs.private_memory, site.settled_workers()))


def _body(client, args):
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"%s",' \
           b'"language":"bash","code":"true","args":[%s0]}}}' % (client.conversation.encode(), args)


@test("a body of millions of values is refused at once and leaves no memory behind", timeout=240)  # may build the program
def _():
    site = _site()
    client = sites.new_conversation(site.client())
    for value in (b"{},", b"[],", b"1,", b'{"a":{}},'):
        start = time.monotonic()
        answer = client.post(_body(client, value * (15 * MB // len(value))), headers={"MCP-Protocol-Version": "2025-11-25"})
        equal((answer.status, answer.error_code()), (400, -32700))
        contains(answer.json()["error"]["message"], "more than 200000 values")
        in_time(start, 10, "refused before a tree is built")
    wait_until(lambda: _memory(site) < 40 * MB, 5, "the workers' memory is given back")


@test("a large body that is served leaves no memory behind either")
def _():
    site = _site()
    client = sites.new_conversation(site.client())
    client.upload("large", b"x" * (11 * MB))
    answer = client.post(_body(client, b'"",' * 60000), headers={"MCP-Protocol-Version": "2025-11-25"})
    equal(answer.status, 200)
    wait_until(lambda: _memory(site) < 40 * MB, 5, "the workers' memory is given back")


def _limits(pids):
    """Those of the processes; a worker that is not needed may have ended meanwhile."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/limits", encoding="ascii") as file:
            found.update(map(int, re.findall(r"^Max data size\s+\d+\s+(\d+)", file.read(), re.M)))
    return found


@test("a worker that reaches the limit of its memory is replaced at once; the other requests go on")
def _():
    site = sites.own({"SANDCGI_WORKERS": WORKERS}, binary=sites.plain_binary())
    wait_until(lambda: _limits(site.workers()) == {(256 + 8 * 16) * MB}, 10, "the limit for bodies of 16 MB")
    wait_until(lambda: _limits([site.hub_process()]) == {512 * MB + 2000 * 128 * 1024}, 10, "the hub's, for 2000 streams")
    site.stop()
    site.start_server(prefix=("prlimit", f"--data={40 * MB}"))  # a limit of the caller's stays, if it is lower
    site.start_nginx()
    site.wait_healthy()
    client = sites.new_conversation(site.client())
    connection = client.begin_run(runs.UNTIL_GO + "echo fine", "bash")
    wait_until(site.busy_workers, 10, "a worker has the call")
    before = site.workers()
    equal(_limits(site.workers()), {40 * MB})
    answer = client.post(_body(client, b'"%s",' % (b"x" * 15 * MB)), patient=False)
    equal((answer.status, answer.error_code()), (502, -32603))
    wait_until(lambda: "exited with status 70; restarting" in site.log(), 5, "the master notes its end")
    wait_until(lambda: len(site.workers()) >= len(before) and site.workers() != before, 5, "another worker, at once")
    contains(site.log(), "error: out of memory")
    equal(client.run("echo next", "bash")["stdout"], "next\n")
    runs.go(client)
    result, status = end_run(connection, 20)
    equal((status, result["stdout"]), (200, "fine\n"))


def _tree_bytes(folder):
    total = 0
    for where, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(f"{where}/{name}").st_size
            except FileNotFoundError:
                pass
    return total


@test("kept results of a tenant are bounded: the oldest go, the newest stay readable, control bytes take no more than others")
def _():
    if not IS_ROOT:
        raise Skip("only root reads the records")
    site = _site()
    client = sites.new_conversation(site.client())
    code = "head -c 1200000 /dev/zero | tr '\\0' '\\1' | tee /dev/stderr"
    ids, most = [], 0
    for _ in range(10):
        ids.append(client.run(code, "bash", background=True)["runId"])
        result = client.structured("get_run", {"runId": ids[-1], "waitMs": 30000})
        equal((result["status"], set(result["stdout"]) >= {"\x01"}), ("ok", True))
        most = max(most, _tree_bytes(f"{site.root}/.runs"))
    check(most < 8 * MB + 2 * MB, f".runs took {most} bytes")
    one = most / len(client.structured("list_runs", {})["runs"])
    check(one < 1.7 * MB, f"one result takes {one} bytes")
    wait_until(lambda: _tree_bytes(f"{site.root}/.runs") <= 8 * MB, 5, "what is over the bound goes with the end of a run")
    again = client.structured("get_run", {"runId": ids[-1]})
    equal(again["stdout"], result["stdout"])
    contains(client.tool_error("get_run", {"runId": ids[0]}), "removed for newer results")

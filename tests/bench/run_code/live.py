"""Long runs: how late a program's output reaches the client, and what a poll costs."""
import json
import time

from stack import Caller, messages, new_name
from stats import Table, number, median, quantile

LINES = 100
TALKER = f"""import time
for n in range({LINES}):
    print("at", time.time_ns(), flush=True)
    time.sleep(0.05)
"""
POLLS = 300


def _delays(text, now):
    """Milliseconds since each "at N" line was printed."""
    return [(now - int(line[3:])) / 1e6 for line in text.splitlines() if line.startswith("at ") and line[3:].isdigit()]


def _stream_delays(server):
    """By progress messages on the call's own event stream."""
    caller = server.caller()
    params = {"name": "run_code", "_meta": {"progressToken": "bench"},
              "arguments": {"conversationId": new_name(), "language": "python", "code": TALKER}}
    connection = caller.connect()
    _, headers = connection.begin(caller.request("tools/call", params))
    found, rest = [], b""
    for chunk in connection.chunks(headers):
        now = time.time_ns()
        rest += chunk
        while b"\n\n" in rest:
            event, _, rest = rest.partition(b"\n\n")
            for line in event.decode().splitlines():
                message = json.loads(line[5:]) if line.startswith("data:") and line[5:].strip() else {}
                found += _delays(message.get("params", {}).get("message", ""), now)
    caller.close()
    return found


def _poll_delays(server):
    """By get_run, one long poll behind the other."""
    caller = server.caller()
    run = caller.tool("run_code", {"conversationId": new_name(), "language": "python", "code": TALKER, "background": True})
    found, since = [], 0
    while True:
        answer = caller.tool("get_run", {"runId": run["runId"], "sinceByte": since, "waitMs": 10000})
        found += _delays(answer["newOutput"], time.time_ns())
        since = answer["nextByte"]
        if answer["status"] != "running":
            caller.close()
            return found


def _poll_costs(server):
    """Milliseconds of a get_run that has nothing to tell."""
    caller = server.caller()
    run = caller.tool("run_code", {"conversationId": new_name(), "language": "bash", "code": "sleep 60", "background": True,
                                   "timeoutMs": 90000})
    found = []
    call = caller.request("tools/call", {"name": "get_run", "arguments": {"runId": run["runId"], "sinceByte": 0, "waitMs": 0}})
    for _ in range(POLLS):
        start = time.perf_counter()
        status, headers, body = caller.connect().call(call)
        found.append((time.perf_counter() - start) * 1000)
        answer = messages(headers, body)[-1].get("result", {})
        if status != 200 or answer.get("isError"):
            raise RuntimeError(f"get_run: {body[:300]!r}")
    caller.tool("cancel_run", {"runId": run["runId"]})
    caller.close()
    return found


def part(world, options):
    table = Table("Long runs: milliseconds, through nginx with TLS", "", "median", "p95", "max", "samples")
    for title, measure in (("from a line's printing to its progress message", _stream_delays),
                           ("from a line's printing to get_run's answer", _poll_delays),
                           ("a get_run that has nothing to tell", _poll_costs)):
        values = measure(world.warm)
        table.add(title, number(median(values), 2), number(quantile(values, 0.95), 2), number(max(values, default=None), 2),
                  len(values))
    table.note(f"the program prints its clock each 50 ms, {LINES} times; containers share the host's clock")
    table.print(options.markdown)

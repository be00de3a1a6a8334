"""Programs that try to outlive their run or to harm the next one: what the next one sees is what a new container shows."""
import json

import sites
import warm
from harness import Failed, check, equal, test
from mcp import ToolError
from survivors import ATTACKERS, PROBE, TOLERANCE, TOOLS

LANES = 4
SEEN_MIN = 30  # attackers whose traces a probe in the same container has to see
SHELLS = {"python": "python3 -", "bash": "bash -s"}


def _site():
    return sites.with_settings(SANDBOX_WARM="python=2", SANDBOX_PERSISTENT_MAX="40", SANDBOX_PERSISTENT_SERVER="60",
                               SANDBOX_MAX_RUNS=str(LANES), SANDCGI_WORKERS="8")


def _code(language, code):
    return TOOLS + code if language == "python" else code


def _view(output):
    """What the probe printed; None: it did not get that far."""
    found = [line for line in output.splitlines() if line.startswith("VIEW")]
    return json.loads(found[-1].removeprefix("VIEW")) if found else None


def _differences(view, expected):
    return {name: (view[name], expected[name]) for name in expected
            if (abs(view[name] - expected[name]) > TOLERANCE[name] if name in TOLERANCE else view[name] != expected[name])}


def _lanes(work, items):
    """work(client, item) for all items, in LANES conversations' turns at once; the results in their order."""
    items = list(items)
    results = [None] * len(items)

    def lane(first):
        for at in range(first, len(items), LANES):
            results[at] = work(items[at])
        return True
    for problem in warm.together([lambda n=n: lane(n) for n in range(LANES)]):
        if problem is not True:
            raise problem
    return results


def _probe(client):
    result = client.run(PROBE)
    view = _view(result["stdout"])
    if not view:
        raise Failed(f"the probe failed: {result}")
    return view


def _loaded_client(site):
    """Of a conversation whose container has a template with libraries, too."""
    client = warm.new_client(site)
    equal(client.run("import numpy; print(1)")["stdout"], "1\n", "a program with a library")
    return client


@test("H-44: after each of the programs that try to survive, the next run sees what it would see in a new container", timeout=600)
def _():
    site = _site()
    expected = _probe(_loaded_client(site))
    for _ in range(2):  # what differs between new containers is no trace
        equal(_differences(_probe(_loaded_client(site)), expected), {}, "between new conversations")

    def attack(attacker):
        what, language, code = attacker
        client = _loaded_client(site)
        client.run(_code(language, code), language, timeout=10)
        if "/data" in what and "reads" in what:  # that the next run of this conversation reads it is as promised
            client = _loaded_client(site)
        return what, _differences(_probe(client), expected)
    left = {what: found for what, found in _lanes(attack, ATTACKERS) if found}
    equal(left, {}, f"{len(ATTACKERS)} programs")
    check(len(ATTACKERS) >= 40, "there are 40 at least")


@test("H-44: the probe sees the traces of such programs when it runs in the same container", timeout=600)
def _():
    site = _site()

    def execute(client, sandbox, language, code):
        try:
            result = client.structured("exec", {"sandboxId": sandbox, "command": SHELLS[language], "stdin": code, "timeoutMs": 10000})
        except ToolError:  # what ran before has ended the container
            return ""
        return result["results"][-1]["stdout"] if result.get("results") else ""

    def probe_behind(language, code):
        client = warm.new_client(site)
        sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "python"})["sandboxId"]
        execute(client, sandbox, language, code)
        view = _view(execute(client, sandbox, "python", PROBE))
        client.structured("close_sandbox", {"sandboxId": sandbox})
        return view
    expected = probe_behind("bash", "true")
    check(expected, "the probe works")
    equal(_differences(probe_behind("bash", "true"), expected), {}, "behind a program that does nothing")

    def attack(attacker):
        what, language, code = attacker
        view = probe_behind(language, _code(language, code))
        return what, not view or _differences(view, expected)
    seen = dict(_lanes(attack, [one for one in ATTACKERS if one[1] in SHELLS]))
    unseen = sorted(what for what, found in seen.items() if not found)
    check(len(seen) - len(unseen) >= SEEN_MIN, f"not seen: {unseen}")

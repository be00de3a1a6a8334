#!/usr/bin/env python3
"""Seventy everyday jobs as assistants do them (jobs_table.py): at the first call or, with what its answer says, at the second; with the tokens
of the answers. At /mcp, with a server's defaults, from its start on: nothing waits until it is warm. Prints figures beside their goals;
asserts nothing. Needs an engine (DOCKER_HOST) with the images and a build (SANDCGI_TEST_BINARY)."""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../e2e"]

# pylint: disable=wrong-import-position
import first_tries  # noqa: E402
import harness  # noqa: E402
import sites  # noqa: E402
from jobs_table import DONE, JOBS  # noqa: E402

GOALS = {1: 50, 2: 62}
DEFAULTS = dict.fromkeys(("SANDBOX_NETWORK", "SANDBOX_IMAGES", "SANDBOX_MEMORY", "SANDBOX_CPUS", "SANDBOX_TIMEOUT", "SANDBOX_WARM", "TOOLS"))
CHARACTERS_OF_TOKEN = 4


def with_run(call, said):
    """A get_run of the run that the answer names."""
    name, arguments = call
    found = re.search(r"runId (\w+)", said)
    return (name, arguments | {"runId": found[1]}) if name == "get_run" and found else call


def attempt(client, calls, wanted):
    """The number of the call that did the job, 0: none; and all that was said."""
    said = []
    for number, call in enumerate(calls, 1):
        said.append(first_tries.answer(client, with_run(call, said[-1] if said else "")))
        if not first_tries.missing(said[-1], wanted):
            return number, said
    return 0, said


def main():
    chosen = {int(word) for word in sys.argv[1:]}
    done, tokens, lost = {0: 0, 1: 0, 2: 0}, 0, []
    print(__doc__.split(":", maxsplit=1)[0], flush=True)
    site = sites.own_of_suite(DEFAULTS)
    for number, job, before, calls, *wanted in [row for row in JOBS if not chosen or row[0] in chosen]:
        client = sites.new_conversation(site.client())
        for call in before:
            first_tries.answer(client, call)
        begun = time.monotonic()
        call, said = attempt(client, calls, wanted)
        done[call] += 1
        tokens += sum(map(len, said)) / CHARACTERS_OF_TOKEN
        if call != 1 and DONE in said[0] and "gone" not in said[0]:
            lost.append(number)
        print(f"{number:3} {job}: {f'call {call}' if call else 'not done'}, {time.monotonic() - begun:.1f} s", flush=True)
        if call != 1:
            print("      " + said[0].strip()[-400:].replace("\n", "\n      "))
        if not call:
            print("    > " + said[-1].strip()[-400:].replace("\n", "\n    > "))
    print(f"\nof {sum(done.values())} jobs done at the first call {done[1]} (goal {GOALS[1]}), in two {done[1] + done[2]} (goal {GOALS[2]}); "
          f"ended well without their result, and silent: {len(lost)} {lost or ''}(goal 0); {tokens:.0f} tokens of answers")


if __name__ == "__main__":
    try:
        main()
    finally:
        harness.close()

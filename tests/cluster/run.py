#!/usr/bin/env python3
"""Three nodes and an edge on this machine. DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to test (default: build/sandcgi).

  tests/cluster/run.py [WORD]    only the tests whose sentences contain the word
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e"), HERE]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import sites  # noqa: E402
import test_cluster  # noqa: E402,F401  pylint: disable=unused-import


def explain():
    """What the servers complained of lately."""
    return "\n".join(f"{site.name}: {line}" for site in sites.all_sites for line in site.log().splitlines()[-200:] if " info " not in line)


def main():
    counts = harness.run_tests(sys.argv[1] if len(sys.argv) > 1 else None, explain)
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The end-to-end suite. DOCKER_HOST names the engine; SANDCGI_TEST_BINARY the sandcgi to test (default: build/sandcgi)."""
import argparse
import importlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import clone  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import sites  # noqa: E402  pylint: disable=wrong-import-position

# Those that wait more than they work: run.sh runs them beside suites that do so, too.
WAITING = (
    "tunnel",
    "long_runs",
    "retention",
)
# test_logs looks at what all others left behind: it is last.
MODULES = (
    "start",
    "protocol",
    "sessions",
    "streams",
    "listening",
    "tunnel",
    "resources",
    "stdio",
    "desktop",
    "offers",
    "tools",
    "answers",
    "network",
    "uploads",
    "environment",
    "files",
    "file_urls",
    "file_tools",
    "hostile",
    "hostile_tree",
    "foreign_accounts",
    "warm",
    "reuse",
    "survivors",
    "users",
    "runs",
    "crash",
    "update",
    "versions",
    "existing",
    "frontends",
    "other_servers",
    "debian",
    "compose",
    "engine",
    "long_runs",
    "podman",
    "soak",
    "toolsets",
    "tenants",
    "oauth",
    "profiles",
    "sandboxes",
    "archives",
    "retention",
    "disk",
    "pictures",
    "links",
    "packages",
    "local",
    "crowds",
    "operators",
    "monitoring",
    "backup",
    "store",
    "logs",
    "memory",
)


def load(part):
    """The modules of a part, None: all. Each part ends with a look at its logs."""
    for name in MODULES:
        if part is None or name == "logs" or (name in WAITING) == (part == "waiting"):
            importlib.import_module(f"test_{name}")


def explain():
    """The end of the log of the server that was used last."""
    if not sites.all_sites:
        return ""
    site = sites.all_sites[-1]
    try:
        return "log of " + site.folder + ":\n" + "\n".join(site.log().splitlines()[-15:])
    except OSError:
        return ""


def bench(script):
    """Starts the clone and hands the script what it needs."""
    try:
        house = clone.started()
        environment = house.environment() | {"SANDCGI_ENV_FILE": house.env_file}
        return subprocess.run([script], cwd=house.folder, env=environment, check=False).returncode
    finally:
        harness.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="tests whose file or sentence contains NAME")
    parser.add_argument("--part", choices=("waiting", "rest"), help="tests of the modules that mostly wait, or of the others")
    parser.add_argument("--list", action="store_true", help="name the tests")
    parser.add_argument("--bench", metavar="SCRIPT", help="start a server and run SCRIPT against it")
    options = parser.parse_args()
    load(options.part)
    if options.list:
        for one in harness.selected(options.only):
            print(f"{one.module.removeprefix('test_')}: {one.sentence}")
        return 0
    if options.bench:
        return bench(options.bench)
    counts = harness.run_tests(options.only, explain)
    if not any(counts.values()):
        print(f"no test matches '{options.only}'; see --list")
        counts["FAILED"] = 1
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

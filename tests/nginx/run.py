#!/usr/bin/env python3
"""The nginx part against a real nginx: tokens, parameters, nginx's own errors, streams, files, logs.

Prints "ok"/"FAILED" lines and "N passed, N failed, N skipped"; ends with 1 when something failed.
  tests/nginx/run.py [WORD…]    only the groups whose names contain one of the words
"""
import sys
import traceback

import groups_behind
import groups_cluster
import groups_files
import groups_mcp
import groups_oauth
import groups_refused
import groups_setup
import groups_unhurt
import groups_walk
from checks import Checks
from front import find_nginx

GROUPS = groups_setup.GROUPS + groups_mcp.GROUPS + groups_oauth.GROUPS + groups_files.GROUPS + groups_behind.GROUPS + groups_walk.GROUPS + groups_unhurt.GROUPS + groups_refused.GROUPS + groups_cluster.GROUPS


def main():
    checks = Checks()
    words = sys.argv[1:]
    for group in GROUPS:
        if words and not any(word in group.__name__ for word in words):
            continue
        if not find_nginx():
            checks.skip(group.__name__, "nginx is not installed")
            continue
        try:
            group(checks)
        except Exception:  # the other groups still have something to say
            checks.check(f"{group.__name__} ran to its end", False, traceback.format_exc())
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""list_files on a folder of many files, beside find in the same directory, turn by turn; prints figures, asserts that both found the same.
DOCKER_HOST names the engine, SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers)."""
import argparse
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "run_code"), os.path.join(HERE, "../e2e")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import sites  # noqa: E402
from stats import median, quantile  # noqa: E402

PAGE = 1000


def find(folder):
    """What a shell would do to know as much: names, types, sizes, times."""
    return subprocess.run(["find", folder, "-mindepth", "1", "-printf", r"%P\t%y\t%s\t%T@\n"], check=True, capture_output=True).stdout.count(b"\n")


def pages(client, max_pages=10**6, **arguments):
    """Files found, and the seconds of each page."""
    n, seconds, cursor = 0, [], {}
    while len(seconds) < max_pages:
        start = time.perf_counter()
        page = client.structured("list_files", {"conversationId": client.conversation, "limit": PAGE} | arguments | cursor)
        seconds.append(time.perf_counter() - start)
        n += len(page["files"])
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    return n, seconds


def timed(function, *arguments):
    start = time.perf_counter()
    got = function(*arguments)
    return got, time.perf_counter() - start


def show(name, seconds):
    print(f"  {name:34} median {median(seconds) * 1000:8.1f} ms   p95 {quantile(seconds, 0.95) * 1000:8.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    try:
        site = sites.own_of_suite({"SANDCGI_LOG_LEVEL": None, "SANDBOX_FILES": "0"})
        client = sites.new_conversation(site.client())
        client.run(f"import os\nfor i in range({options.files}): os.mknod(f'file-{{i:07}}.csv')", timeout=300)
        folder = f"{site.root}/{client.upload('x', b'')['file']['url'].split('/')[-2]}"
        finds, wholes, singles, globs = [], [], [], []

        def one_find():
            found, took = timed(find, folder)
            harness.equal(found, options.files + 1)
            finds.append(took)

        def one_listing():
            (found, seconds), took = timed(pages, client)
            harness.equal(found, options.files + 1)
            wholes.append(took)
            singles.extend(seconds)
            globs.extend(pages(client, glob="file-*9.csv", max_pages=1)[1])
        for _ in range(options.rounds):
            for step in random.sample((one_find, one_listing), 2):
                step()
        print(f"{options.files} files in one folder, {options.rounds} rounds, pages of {PAGE}, through nginx with TLS:")
        show("find, the whole folder", finds)
        show("list_files, the whole folder", wholes)
        show("list_files, one page", singles)
        show("list_files with a glob, one page", globs)
        ratios = [one / other for one, other in zip(wholes, finds)]
        print(f"  list_files / find                  median {median(ratios):8.2f}      p95 {quantile(ratios, 0.95):8.2f}")
    finally:
        harness.close()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Is there room for a run of the tests? Ends with 1 and a sentence for each file system on which there is not."""
import collections
import os
import shutil
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# GB. The images take one, and another while they are built.
NEEDED = (("/var/lib", 3), ("/tmp", 2), (TOP, 1))


def lacking(needed=NEEDED):
    together = collections.defaultdict(list)
    for path, size in needed:
        together[os.stat(path).st_dev].append((path, size))
    sentences = []
    for places in together.values():
        wanted, free = sum(size for _, size in places), shutil.disk_usage(places[0][0]).free / 1e9
        if free < wanted:
            sentences.append(f"the tests need {wanted} GB free for {' and '.join(path for path, _ in places)}, where {free:.1f} GB are: make room, then try again")
    return sentences


if __name__ == "__main__":
    found = lacking()
    for sentence in found:
        print(f"tests: {sentence}", file=sys.stderr)
    sys.exit(1 if found else 0)

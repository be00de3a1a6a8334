"""Whole lines leave at once: what a program printed before it was stopped is not lost in a buffer. And the packages that
were installed into the conversation are imported before the image's own, but behind the standard library.

An interpreter that was started before its program is known waits here; see warm.py.
"""

import os
import sys

try:
    sys.stdout.reconfigure(line_buffering=True)
except AttributeError:
    pass

PACKAGES = "/data/.packages/python"


def add_packages():
    """A session calls this again before each cell: what it wants may have been installed meanwhile."""
    if PACKAGES not in sys.path and os.path.isdir(PACKAGES):
        image = [place for place, path in enumerate(sys.path) if path.endswith("dist-packages")]
        sys.path.insert(image[0] if image else len(sys.path), PACKAGES)


add_packages()
if "SANDBOX_HOOK" in os.environ:
    with open("/usr/local/lib/sandbox/python/warm.py") as hook:
        code = compile(hook.read(), hook.name, "exec")
    exec(code, {"__name__": "warm", "add_packages": add_packages})
    del hook, code

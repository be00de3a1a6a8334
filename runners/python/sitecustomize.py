"""Whole lines leave at once: what a program printed before it was stopped is not lost in a buffer.

An interpreter that was started ahead waits here for its program; everything of that is in ahead.py.
"""

import os
import sys

try:
    sys.stdout.reconfigure(line_buffering=True)
except AttributeError:
    pass

if "SANDBOX_AHEAD" in os.environ:
    with open("/usr/local/lib/sandbox/ahead.py") as hook:
        code = compile(hook.read(), hook.name, "exec")
    exec(code, {"__name__": "ahead"})
    del hook, code

"""Whole lines leave at once: what a program printed before it was stopped is not lost in a buffer."""

import sys

try:
    sys.stdout.reconfigure(line_buffering=True)
except AttributeError:
    pass

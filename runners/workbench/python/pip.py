#!/usr/bin/python3 -P
"""pip for commands: `pip`, `pip3` and `python -m pip`, whose real one lies where programs do not see it.

What it installs goes where install_package puts packages, so that later programs of the conversation import it. It has no
index but what its own network reaches, and says so in pip's words.
"""

import os
import runpy
import site
import sys
import sysconfig
import tempfile

HOME = "/data/.packages"
TARGET = HOME + "/python"
PIP = "/usr/local/lib/sandbox/pip"


def become_pip():
    # The system's folders cannot be written to, so pip takes the user's: these.
    os.environ["PYTHONUSERBASE"] = site.USER_BASE = site.USER_SITE = TARGET
    site.ENABLE_USER_SITE = True
    for kind in ("purelib", "platlib"):
        sysconfig._INSTALL_SCHEMES["posix_user"][kind] = TARGET
    os.environ.update(PIP_BREAK_SYSTEM_PACKAGES="1", PIP_NO_CACHE_DIR="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    os.environ.setdefault("PIP_RETRIES", "1")
    sys.path.insert(0, PIP)
    sys.argv[0] = "pip"
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def main():
    if "install" not in sys.argv[1:]:
        become_pip()
    os.makedirs(TARGET, exist_ok=True)
    # /tmp is small, and memory.
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=HOME) as os.environ["TMPDIR"]:
        become_pip()


if __name__ == "__main__":
    main()

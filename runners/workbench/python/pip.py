#!/usr/bin/python3 -P
"""pip for commands: `pip`, `pip3` and `python -m pip`, whose real one lies where programs do not see it.

What it installs goes where install_package puts packages, so that later programs of the conversation import it. It knows the
names that install_package knows. It has no index but what its own network reaches; where there is none it says what has one.
"""

import importlib.metadata
import os
import runpy
import site
import socket
import sys
import sysconfig
import tempfile
import urllib.parse

sys.path.insert(0, "/usr/local/lib/sandbox/python")
from packages import NAME, in_image, resolve  # noqa: E402

del sys.path[0]

HOME = "/data/.packages"
TARGET = HOME + "/python"
PIP = "/usr/local/lib/sandbox/pip"
# Options whose next word is no package.
VALUED = ("-r", "--requirement", "-c", "--constraint", "-t", "--target", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-e", "--editable",
          "--root", "--prefix", "--src", "--platform", "--python-version", "--timeout", "--retries", "--trusted-host", "--cache-dir", "--proxy", "--cert",
          "--progress-bar", "--no-binary", "--only-binary", "--log")
# What says that the packages do not come from an index that a network is needed for.
ELSEWHERE = ("-f", "--find-links", "--no-index", "-e", "--editable")


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


def is_package(word):
    return NAME.match(word) and "/" not in word and not os.path.exists(word) and not word.endswith((".whl", ".gz", ".zip"))


def lines_of(path):
    with open(path) as file:
        words = [line.split("#", 1)[0].split(";", 1)[0].strip() for line in file]
    return [word for word in words if word and word[0] != "-"]


def read(words):
    """The words with the packages' right names, and these packages; what is in requirements' files, too."""
    said, packages = [], []
    for before, word in zip(["", *words], words):
        if before in ("-r", "--requirement") and os.path.isfile(word):
            packages += lines_of(word)
        elif word[0] != "-" and before not in VALUED and is_package(word):
            name = NAME.match(word).group()
            word = resolve(name)[0] + word[len(name):]
            packages.append(word)
        said.append(word)
    return said, packages


def is_there(word):
    """Whether it is installed, in a version that fits."""
    sys.path.insert(0, PIP)
    try:
        from pip._vendor.packaging.requirements import Requirement

        wanted = Requirement(word)
        if wanted.name in sys.stdlib_module_names:
            return True
        return wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
    except Exception:  # a part of Debian's packages has no metadata
        return not set(word) & set("<>=!~@") and in_image(resolve(NAME.match(word).group())[1])
    finally:
        sys.path.remove(PIP)


def has_way():
    """Whether an index may be reached."""
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        return True
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
    for option in ("-i", "--index-url"):
        if option in sys.argv[:-1]:
            index = sys.argv[sys.argv.index(option) + 1]
    try:
        return bool(socket.getaddrinfo(urllib.parse.urlsplit(index).hostname, None))
    except OSError:
        return False


def install():
    words = sys.argv[sys.argv.index("install") + 1:]
    said, packages = read(words)
    if packages and not any(word.split("=")[0] in ELSEWHERE for word in words):
        missing = [word for word in packages if not is_there(word)]
        if not missing and not {"-U", "--upgrade", "--force-reinstall"} & {*words} or not has_way():
            for word in packages:
                name = NAME.match(word).group()
                if word not in missing and not {"-q", "--quiet"} & {*words}:
                    print(f"Requirement already satisfied: {name}: import {resolve(name)[1]}")
            if missing:
                sys.exit(f"{', '.join(missing)} {'are' if missing[1:] else 'is'} not installed: install_package")
            return
    sys.argv[sys.argv.index("install") + 1:] = said
    os.makedirs(TARGET, exist_ok=True)
    # /tmp is small, and memory.
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=HOME) as os.environ["TMPDIR"]:
        become_pip()


def main():
    if "install" in sys.argv[1:]:
        install()
    else:
        become_pip()


if __name__ == "__main__":
    main()

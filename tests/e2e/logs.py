"""What tests left in the logs of their servers."""
import os
import re

import clone
import sites
from harness import check, equal

COMPLAINTS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion", "SEGV", "signal 11", "signal 6;")


def texts():
    """(path, text) of every log of every server of this process."""
    paths = []
    for site in sites.all_sites:
        paths += [os.path.join(where, name) for where, _folders, names in os.walk(f"{site.folder}/log") for name in names]
    if clone.made.cache_info().currsize:
        paths += clone.made().logs()
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield path, file.read()


def _secrets():
    words = [word for site in sites.all_sites for word in (site.token, site.secret, site.settings.get("FILE_SECRET")) if word]
    if clone.made.cache_info().currsize and os.path.exists(clone.made().env_file):
        words += [clone.made().setting("MCP_API_TOKEN"), clone.made().setting("FILE_SECRET")]
    return words


def look():
    """A test of each module: no secret, no whole URL of a file, no complaint of a sanitizer, no crash (H-10)."""
    words = _secrets()
    for path, text in texts():
        for word in words:
            check(len(word) < 16 or word not in text, f"a secret is in {path}")
        equal(re.findall(r"/files/[0-9a-f]{64}", text), [], f"whole file URLs in {path}")
        for word in COMPLAINTS:
            check(word not in text, f"{word} in {path}: {text[max(0, text.find(word) - 300):text.find(word) + 1500]}")

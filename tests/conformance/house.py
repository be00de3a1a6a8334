"""Servers for the conformance tests: the end-to-end tests' Site, open to the suite's way of calling."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import sites  # noqa: E402  pylint: disable=wrong-import-position
from harness import TOP  # noqa: E402  pylint: disable=wrong-import-position

FIXTURES = os.environ.get("SANDCGI_CONFORMANCE_BINARY") or os.path.join(
    os.path.dirname(sites.BINARY), "tests/conformance/sandcgi-conformance")


class House(sites.Site):
    """Plain HTTP on loopback is what the suite calls (its probe for DNS rebinding wants such an address)."""

    def __init__(self, fixtures=True, settings=None):
        super().__init__(settings, binary=FIXTURES if fixtures else sites.BINARY)
        origins = [f"http://{host}:{self.http_port}" for host in ("127.0.0.1", "localhost")]
        self.settings["SANDCGI_ALLOWED_ORIGINS"] = ",".join(origins)
        self.nginx_values |= {"ORIGINS": " ".join(origins), "PARAM_HEADERS": "Region"}
        self.write_config()

    def url(self, place="/mcp"):
        return f"http://127.0.0.1:{self.http_port}{place}"


__all__ = ["House", "FIXTURES", "TOP"]

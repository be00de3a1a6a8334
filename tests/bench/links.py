#!/usr/bin/env python3
"""Uploads by link and downloads (plain and signed links, and by the program as under Apache) beside the same nginx's own PUT (DAV) and static
files: the same file, curl, plain HTTP on loopback, turn by turn in random order. Asserts nothing. Needs a built binary (SANDCGI_TEST_BINARY) and an engine (DOCKER_HOST)."""
import argparse
import http.client
import os
import pwd
import random
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/run_code", f"{HERE}/../e2e"]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import procs  # noqa: E402
import sites  # noqa: E402
from stats import Table, median, quantile  # noqa: E402

MIB = 1024 * 1024
SMALL = 10 * 1024
PLAIN = """
pid "{folder}/plain.pid"; error_log "{folder}/log/plain.log"; worker_processes auto; {user}
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on;
    client_body_temp_path "{folder}/plain-tmp"; client_body_buffer_size 256k; client_max_body_size 0;
    server {{
        listen 127.0.0.1:{port};
        location / {{ root "{folder}/plain"; dav_methods PUT; }}
        location /files/ {{
            fastcgi_pass "unix:{front}";
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param SANDCGI_PLACE file;
            fastcgi_param SANDCGI_SECRET {secret};
            fastcgi_max_temp_file_size 0;
        }}
    }}
}}
"""


class Plain:
    """An nginx that only serves and takes files, on the same file system, and passes the links of a site to its workers."""

    def __init__(self, site):
        folder = site.folder
        self.port = sites.free_port()
        self.folder = f"{folder}/plain"
        account = sites.web_account()
        for name in ("plain", "plain-tmp"):
            os.mkdir(f"{folder}/{name}")
            if account:
                os.chown(f"{folder}/{name}", pwd.getpwnam(account).pw_uid, -1)
        with open(f"{folder}/plain.conf", "w", encoding="utf-8") as file:
            file.write(PLAIN.format(folder=folder, port=self.port, front=site.front, secret=site.secret, user=f"user {account};" if account else ""))
        self.process = subprocess.Popen([*sites.DIE_WITH_US, sites.nginx_binary(), "-c", f"{folder}/plain.conf", "-e", f"{folder}/log/plain.log",
                                         "-g", "daemon off;"])
        harness.at_end(procs.end, self.process)
        harness.wait_until(self.answers, 10, "the plain nginx answers")

    def answers(self):
        return subprocess.run(["curl", "-s", f"http://127.0.0.1:{self.port}/"], check=False, capture_output=True).returncode == 0

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def by_program(self, link):
        return self.url(urllib.parse.urlsplit(link).path[1:])


def curl(*words):
    """Seconds that curl took."""
    done = subprocess.run(["curl", "-sS", "-f", "-o", "/dev/null", "-w", "%{time_total}", *words], check=True, capture_output=True, text=True)
    return float(done.stdout)


class Side:
    """One of our servers and a conversation on it."""

    def __init__(self, settings):
        self.site = sites.own_of_suite(settings)
        self.client = sites.new_conversation(self.site.client(), "bench")

    def local(self, url):
        return url.replace(self.site.base_url, f"http://127.0.0.1:{self.site.http_port}")

    def link(self):
        return self.local(self.client.structured("create_upload", {"conversationId": self.client.conversation, "filename": "file"})["url"])

    def file(self):
        files = self.client.run("touch file", "bash")["files"]
        return self.local(next(one["url"] for one in files if one["name"] == "file"))


def measure(ways, rounds):
    """{name: seconds of each round}, the order by chance in every round; the first round only warms up."""
    seconds = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name in random.sample(list(ways), len(ways)):
            took = ways[name]()
            if turn:
                seconds[name].append(took)
    return seconds


def show(title, size, seconds, beside, markdown):
    table = Table(f"{title}, {size} MiB", "", "MB/s median", "ms median", "ms p95", "of nginx's own: median", "p5")
    for name, all_of in seconds.items():
        shares = [own / took for own, took in zip(seconds[beside], all_of)]
        table.add(name, f"{size * MIB / 1e6 / median(all_of):.0f}", f"{1000 * median(all_of):.1f}", f"{1000 * quantile(all_of, 0.95):.1f}",
                  f"{median(shares):.2f}", f"{quantile(shares, 0.05):.2f}")
    table.note("goal: 0.9 of nginx's own speed")
    table.print(markdown)


def compare(size, rounds, sides, plain, markdown):
    source = f"{plain.folder}/source"
    with open(source, "wb") as file:
        for _ in range(size):
            file.write(os.urandom(MIB))
    unsigned, signed = sides
    put = {"nginx's PUT": lambda: curl("-T", source, plain.url("put"))}
    # The links are made before the clock starts.
    links = [unsigned.link() for _ in range(rounds + 1)]
    put["upload by link"] = lambda: curl("-T", source, links.pop())
    show("Upload", size, measure(put, rounds), "nginx's PUT", markdown)
    curl("-T", source, signed.link())
    plain_link, signed_link = unsigned.file(), signed.file()
    get = {"nginx's static file": lambda: curl(plain.url("source")), "download": lambda: curl(plain_link),
           "download, signed link": lambda: curl(signed_link),
           "download, by the program": lambda: curl(plain.by_program(plain_link))}
    show("Download", size, measure(get, rounds), "nginx's static file", markdown)


class Kept:
    """Requests for one URL on one connection."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.target = f"{parts.path}?{parts.query}"
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def get(self):
        """Seconds of one request."""
        began = time.perf_counter()
        self.connection.request("GET", self.target)
        answer = self.connection.getresponse()
        if (answer.status, len(answer.read())) != (200, SMALL):
            raise harness.Failed(f"{self.target}: {answer.status}")
        return time.perf_counter() - began


def compare_small(rounds, sides, plain, markdown):
    with open(f"{plain.folder}/source", "wb") as file:
        file.write(os.urandom(SMALL))
    for side in sides:
        curl("-T", file.name, side.link())
    names = ("nginx's static file", "download", "download, signed link", "download, by the program")
    links = [side.file() for side in sides]
    seconds = measure({name: Kept(url).get for name, url in zip(names, (plain.url("source"), *links, plain.by_program(links[0])))}, 50 * rounds)
    table = Table(f"Download of {SMALL // 1024} KiB, on one connection", "", "us median", "of nginx's own time: median")
    for name, all_of in seconds.items():
        table.add(name, f"{1e6 * median(all_of):.0f}", f"{median(all_of) / median(seconds[names[0]]):.2f}")
    table.print(markdown)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--size", type=int, action="append", help="MiB; may be given several times (8, 256)")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    try:
        sides = (Side({}), Side({"SANDBOX_URL_TTL": "24h"}))
        plain = Plain(sides[0].site)
        for size in options.size or (8, 256):
            compare(size, options.rounds, sides, plain, options.markdown)
        compare_small(options.rounds, sides, plain, options.markdown)
    finally:
        harness.close()


if __name__ == "__main__":
    main()

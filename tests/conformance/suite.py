"""Runs the official suite's command line and reads what came of it."""
import json
import os
import re
import subprocess

from harness import Failed, new_folder

PACKAGE = "node_modules/@modelcontextprotocol/conformance"
LIMIT_S = 240

# (revision, scenario, check id): warnings that the suite's own reference server gets, too.
REFERENCE_WARNINGS = set()


def _package():
    folder = os.environ.get("NODE_FOLDER")
    if not folder:
        raise Failed("NODE_FOLDER is not set: start this with tests/run.sh --only conformance")
    return os.path.join(folder, PACKAGE)


def scored(revision):
    """The scenarios that the suite requires of servers of this revision."""
    names, section = [], None
    with open(os.path.join(_package(), "requirements", revision + ".yaml"), encoding="utf-8") as file:
        for line in file:
            head = re.match(r"(\w+):", line)
            if head:
                section = head.group(1)
            item = re.match(r"  - (\S+)", line)
            if item and section == "server":
                names.append(item.group(1))
    return names


class Result:
    def __init__(self, revision, name):
        self.revision, self.name = revision, name
        self.passed, self.summary = False, "the suite did not run it"
        self.successes = 0
        self.failures, self.warnings, self.warning_ids, self.skipped = [], [], [], []

    def add_checks(self, checks):
        for one in checks:
            text = f"{one['status']} {one['id']}: {one.get('errorMessage') or one.get('description')}"
            text = re.sub(r"\s+", " ", text)[:500]
            if one["status"] == "SUCCESS":
                self.successes += 1
            elif one["status"] == "FAILURE":
                self.failures.append(text)
            elif one["status"] == "WARNING":
                self.warnings.append(text)
                self.warning_ids.append(one["id"])
            elif one["status"] == "SKIPPED":
                self.skipped.append(text)

    def unexpected_warnings(self):
        return [text for id_, text in zip(self.warning_ids, self.warnings)
                if (self.revision, self.name, id_) not in REFERENCE_WARNINGS]


class SuiteRun:
    """One run of a requirement set. The suite cannot send an Authorization header, so a proxy adds it."""

    def __init__(self, site, revision, place="/mcp"):
        self.revision = revision
        self.results = {}
        folder = new_folder(f"suite-{revision}-")
        environment = {"NO_COLOR": "1", "FORCE_COLOR": "0"}
        node = os.environ["NODE"]
        here = os.path.dirname(os.path.abspath(__file__))
        with subprocess.Popen([node, os.path.join(here, "proxy.mjs"), site.url(place), site.token], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as proxy:
            try:
                port = int(proxy.stdout.readline())
                self.output = self._run(node, f"http://127.0.0.1:{port}/mcp", folder, environment)
            finally:
                proxy.stdin.close()
        self._read_summary()
        self._read_checks(folder)

    def _run(self, node, url, folder, environment):
        try:
            done = subprocess.run([node, os.path.join(_package(), "dist/index.js"), "server", "--url", url,
                                   "--requirements", self.revision, "-o", folder], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
                                  env=os.environ | environment, check=False)
        except subprocess.TimeoutExpired as problem:
            raise Failed(f"the suite took longer than {LIMIT_S} s") from problem
        if "=== SUMMARY ===" not in done.stdout:
            raise Failed(f"the suite did not finish: {done.stdout[-1000:]}")
        return done.stdout

    def result(self, name):
        return self.results.setdefault(name, Result(self.revision, name))

    def _read_summary(self):
        for line in self.output.partition("=== SUMMARY ===")[2].splitlines():
            match = re.match(r"([✓✗]) (\S+): (\d+ passed, \d+ failed.*)", line)
            if match:
                found = self.result(match.group(2))
                found.passed, found.summary = match.group(1) == "✓", match.group(3)

    def _read_checks(self, folder):
        for name in sorted(os.listdir(folder)):
            match = re.match(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$", name)
            path = os.path.join(folder, name, "checks.json")
            if match and os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    self.result(match.group(1)).add_checks(json.load(file))

    def line(self):
        names = scored(self.revision)
        return f"{self.revision}: {sum(self.result(name).passed for name in names)}/{len(names)}"

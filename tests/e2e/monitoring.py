"""What a server tells Prometheus, and Prometheus itself: numbers, alert rules, and the dashboard's expressions."""
import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import procs
import sites
from harness import TOP, Skip, at_test_end, check, equal, new_folder, wait_until

FOLDER = f"{TOP}/fcgi/monitoring"
SAMPLE = re.compile(r'(sandcgi_[a-z_]+)((?:\{(?:[a-z_]+="[^"\\\n]*",?)+\})?) (\d+(?:\.\d+)?)$')


def read(address):
    """{name with labels: number}, of a text that keeps to the format."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        equal(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        text = answer.read().decode()
    check(text.endswith("\n"), "no newline at the end")
    kinds, found = {}, {}
    for line in text.splitlines():
        words = line.split(" ", 3)
        if line.startswith("# TYPE "):
            check(words[2] not in kinds, f"{words[2]} comes twice")
            kinds[words[2]] = words[3]
        elif not line.startswith("# HELP "):
            sample = SAMPLE.match(line)
            check(sample, line)
            name = sample.group(1)
            family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
            check(family in kinds and sample.group(1) + sample.group(2) not in found, line)
            found[sample.group(1) + sample.group(2)] = float(sample.group(3))
    return text, found


class Prometheus:
    """Scrapes a server every second."""

    def __init__(self, address):
        if not shutil.which("prometheus"):
            raise Skip("prometheus is not installed")
        folder, self.address = new_folder("prometheus"), f"127.0.0.1:{sites.free_port()}"
        with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                       "rule_files": [f"{FOLDER}/alerts.yml"],
                       "scrape_configs": [{"job_name": "sandcgi", "static_configs": [{"targets": [address]}]}]}, file)
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen([*sites.DIE_WITH_US, "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                        f"--web.listen-address={self.address}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        at_test_end(procs.end, process)
        wait_until(self._is_ready, 20, "prometheus is ready")

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _ask(self, what, **parameters):
        """data of the answer; an expression that is wrong raises."""
        url = f"http://{self.address}/api/v1/{what}?" + urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        """The numbers that are the expression's value now, without those that are none."""
        return [one["value"][1] for one in self._ask("query", query=expression)["result"] if one["value"][1] != "NaN"]

    def history(self, expression, seconds, step):
        """[(labels, [(time, number)])] of the time until now."""
        now = time.time()
        found = self._ask("query_range", query=expression, start=now - seconds, end=now, step=step)["result"]
        return [(one["metric"], [(at, float(value)) for at, value in one["values"] if value != "NaN"]) for one in found]

    def rules(self):
        """Alert rules with their state, when each has been evaluated."""
        def known():
            found = [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]
            return found if all(rule["health"] != "unknown" for rule in found) else None
        return wait_until(known, 10, "rules are evaluated")


def dashboard():
    with open(f"{FOLDER}/dashboard.json", encoding="utf-8") as file:
        return json.load(file)


def filled(expression, rate="10s"):
    """As Grafana fills in its variables."""
    return expression.replace("$__rate_interval", rate).replace("$job", ".*")

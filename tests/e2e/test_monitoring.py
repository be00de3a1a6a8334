"""What Prometheus gets of a server: the numbers, the alert rules, the expressions of the dashboard."""
import functools
import hashlib
import json
import re
import socket
import subprocess
import time

import monitoring
import sites
from harness import PATIENCE, TOP, check, contains, equal, new_folder, test, wait_until


@functools.cache
def _address():
    return f"127.0.0.1:{sites.free_port()}"


def _site():
    return sites.with_settings(SANDCGI_METRICS=_address(), SANDBOX_WARM="python=1,bash=1")


@test("/metrics counts runs, requests, engine calls and times, in Prometheus' format, and is reached on its own address only", core=True)
def _():
    address = f"127.0.0.1:{sites.free_port()}"
    site = sites.own({"SANDCGI_METRICS": address})
    client = sites.new_conversation(site.client())
    for code in "true", "exit 3":
        client.run(code, "bash")

    def counted():
        found = monitoring.read(address)[1]
        return found["sandcgi_up"] == 1 and found.get('sandcgi_runs_total{language="bash",status="error"}') == 1
    wait_until(counted, 20, "the second run is counted")
    text, found = monitoring.read(address)
    tenant = hashlib.sha256(b"default").hexdigest()[:8]
    for name, value in (('sandcgi_runs_total{language="bash",status="ok"}', 1), (f'sandcgi_tenant_runs_total{{tenant="{tenant}"}}', 2),
                        ("sandcgi_up", 1), ("sandcgi_engine_up", 1), ("sandcgi_runs_running", 0), ('sandcgi_run_containers_total{kind="cold"}', 2),
                        ('sandcgi_requests_total{route="tools/call",outcome="ok"}', 2), ("sandcgi_run_total_seconds_count", 2),
                        ('sandcgi_run_total_seconds_bucket{le="+Inf"}', 2), ("sandcgi_runs_max", 16)):
        equal(found.get(name), value, name)
    for name in ("sandcgi_workers", 'sandcgi_engine_calls_total{result="ok"}', 'sandcgi_response_bytes_total{route="tools/call"}', "sandcgi_disk_size_bytes",
                 "sandcgi_run_total_seconds_sum"):
        check(found.get(name, 0) > 0, name)
    for secret in (site.token, site.settings["FILE_SECRET"], "default", client.conversation):
        check(secret not in text, f"{secret} is in the metrics")
    equal(client.http("GET", "/metrics", b"", {}).status, 404)
    for host, status in (("evil.example", 403), ("localhost", 200), ("192.0.2.7:9090", 200)):  # H-76
        with socket.create_connection(tuple(address.split(":"))) as connection:
            connection.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            contains(connection.makefile().readline(), f" {status} ", f"/metrics of {host}")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, ""))
    started = found["sandcgi_start_time_seconds"]
    masters = set(site.masters())
    site.reload()
    wait_until(lambda: not masters & set(site.masters()), 30, "the processes before have ended")
    equal((counted(), monitoring.read(address)[1]["sandcgi_start_time_seconds"]), (True, started), "the numbers outlive a reload")


@test("the alert rules are valid, and rules and dashboard name only metrics that there are")
def _():
    done = subprocess.run(["promtool", "check", "rules", f"{monitoring.FOLDER}/alerts.yml"], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)
    with open(f"{monitoring.FOLDER}/alerts.yml", encoding="utf-8") as rules, open(f"{monitoring.FOLDER}/dashboard.json", encoding="utf-8") as dashboard:
        text = rules.read() + dashboard.read()
    json.loads(text[text.index("\n{") + 1:])
    source = ""
    for name in ("common/base/metrics.c", "fcgi/process/metrics_serve.c"):
        with open(f"{TOP}/{name}", encoding="utf-8") as file:
            source += file.read()
    for name in set(re.findall(r"sandcgi_([a-z_]+)", text)):
        check(f'"{re.sub("_(bucket|count|sum)$", "", name)}"' in source, f"there is no sandcgi_{name}")


PROGRAM = "i=0\nwhile [ $i -lt 60000 ]; do i=$((i + 1)); done"


@test("processor time and memory are counted by purpose: programs, what prepares containers, persistent sandboxes, each kind of process")
def _():
    address, site = _address(), _site()
    client = sites.new_conversation(site.client())

    def of(name):
        found = monitoring.read(address)[1]
        return {key.split('"')[1]: value for key, value in found.items() if key.startswith(name + "{")}
    sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]
    client.structured("exec", {"sandboxId": sandbox, "commands": [PROGRAM]})
    wanted = {"run", "start", "wipe", "sandbox", "master", "worker", "hub", "broker", "helper", "job", "supervisor"}

    def missing():
        client.run(PROGRAM, "bash")
        return wanted - {name for name, value in of("sandcgi_cpu_seconds_total").items() if value > 0}
    wait_until(lambda: not missing(), 15, "each purpose has used processor time")
    check(of("sandcgi_cpu_seconds_total")["run"] > 0.05, "a loop of 60,000 turns")
    wanted = {"waiting", "sandbox", "master", "worker", "hub", "metrics", "broker", "helper", "job"}
    wait_until(lambda: wanted <= of("sandcgi_memory_bytes").keys(), 15, "each purpose takes memory")
    status = subprocess.run([site.binary, "status", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=True).stdout
    check(re.search(r"^         in use: \w+ \d+, .*\bworker \d+.* MB$", status, re.M), status)
    before = of("sandcgi_cpu_seconds_total")
    site.reload()
    client.run("true", "bash")  # by the new broker
    after = of("sandcgi_cpu_seconds_total")
    equal([name for name, value in before.items() if after[name] < value], [], "a counter never falls")


# A server that is well: what each alert looks at, as promtool writes series.
WELL = {"up": "1+0x90", "sandcgi_up": "1+0x90", "sandcgi_engine_up": "1+0x90", "sandcgi_runner_images": "3+0x90", "sandcgi_disk_free_bytes": "50+0x90",
        "sandcgi_disk_size_bytes": "100+0x90", 'sandcgi_runs_total{status="ok"}': "0+60x90", 'sandcgi_runs_total{status="lost"}': "0+0x90",
        'sandcgi_runs_total{status="busy"}': "0+0x90", 'sandcgi_run_queue_seconds_bucket{le="10"}': "0+60x90", 'sandcgi_run_queue_seconds_bucket{le="30"}': "0+60x90",
        'sandcgi_run_queue_seconds_bucket{le="+Inf"}': "0+60x90", "sandcgi_calls_waiting": "1+0x90", "sandcgi_calls_max": "100+0x90",
        'sandcgi_cpu_seconds_total{purpose="run"}': "0+30x90", 'sandcgi_cpu_seconds_total{purpose="load"}': "0+6x90", 'sandcgi_memory_bytes{purpose="worker"}': "30000000+0x90"}
ILL = {"SandcgiDown": {"sandcgi_up": "0+0x90"}, "SandcgiEngineDown": {"sandcgi_engine_up": "0+0x90"}, "SandcgiNoImages": {"sandcgi_runner_images": "0+0x90"},
       "SandcgiDiskNearlyFull": {"sandcgi_disk_free_bytes": "4+0x90"}, "SandcgiRunsFail": {'sandcgi_runs_total{status="lost"}': "0+6x90"},
       "SandcgiRunsRefused": {'sandcgi_runs_total{status="busy"}': "0+1x90"}, "SandcgiQueueSlow": {'sandcgi_run_queue_seconds_bucket{le="10"}': "0+50x90"},
       "SandcgiCallsNearlyFull": {"sandcgi_calls_waiting": "90+0x90"}, "SandcgiPreparationCostly": {'sandcgi_cpu_seconds_total{purpose="load"}': "0+60x90"},
       "SandcgiServerMemory": {'sandcgi_memory_bytes{purpose="worker"}': "3000000000+0x90"}}


def _case(alerts, series):
    labels = 'job="sandcgi",instance="a"'
    rows = [{"series": name[:-1] + f",{labels}}}" if name.endswith("}") else f"{name}{{{labels}}}", "values": values} for name, values in series.items()]
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts]
    return {"interval": "1m", "input_series": rows,
            "promql_expr_test": [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "90m", "exp_samples": samples}]}


@test("each alert fires for what it is about and for nothing else, and none for a server that is well")
def _():
    rules = f"{monitoring.FOLDER}/alerts.yml"
    with open(rules, encoding="utf-8") as file:
        equal(sorted(re.findall(r"- alert: (\w+)", file.read())), sorted(ILL), "alerts that are tried")
    path = f"{new_folder('alerts')}/test.yml"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"rule_files": [rules], "evaluation_interval": "1m",
                   "tests": [_case([], WELL)] + [_case([name], WELL | change) for name, change in ILL.items()]}, file)
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)


@test("Prometheus scrapes a server that works: each expression of the dashboard has a value, and each alert rule can be evaluated", timeout=180)
def _():
    site = _site()
    prometheus = monitoring.Prometheus(_address())
    empty = {(panel["title"], target["expr"]) for panel in monitoring.dashboard()["panels"] for target in panel["targets"]}
    check(len(empty) > 30, "expressions")
    client = sites.new_conversation(site.client())
    end = time.monotonic() + 30 * PATIENCE
    while empty and time.monotonic() < end:
        client.run("true", "bash")
        client.run("exit 3", "python")
        client.run_error("x", "cobol")
        empty -= {(title, expression) for title, expression in empty if prometheus.values(monitoring.filled(expression))}
    equal(sorted(empty), [], "panels without a value")
    rules = prometheus.rules()
    equal(sorted(rule["name"] for rule in rules), sorted(ILL), "rules")
    equal([rule for rule in rules if rule["health"] != "ok" or rule["state"] == "firing"], [])
    names = {name for rule in rules for name in re.findall(r"\bsandcgi_\w+", rule["query"])}
    equal([name for name in sorted(names) if not prometheus.values(name)], [], "metrics of rules that no server tells")

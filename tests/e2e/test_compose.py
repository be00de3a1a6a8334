"""The Compose files: what docker-compose makes of them, and, where asked for, a boot of all of it."""
import json
import os
import secrets
import shutil
import subprocess

import engine
from harness import TOP, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import Client
from sites import clean_environment

BASE, TUNNEL = "docker-compose.yml", "docker-compose.cloudflare.yml"


def _compose(*words, files=(), **environment):
    if not shutil.which("docker-compose"):
        raise Skip("docker-compose is not installed")
    names = [word for name in files for word in ("-f", name)]
    return subprocess.run(["docker-compose", *names, *words], cwd=TOP, env=clean_environment() | environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def _services(*files, **environment):
    done = _compose("config", files=files, **environment)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


@test("docker-compose takes the files; the tunnel's publishes no port, and says what it must be given")
def _():
    contains(_services(SANDCGI_DATA="/data"), "127.0.0.1:8080:8080/tcp")
    given = {"TUNNEL_TOKEN": "t" * 20, "SANDCGI_PUBLIC_URL": "https://sandbox.example.org"}
    text = _services(BASE, TUNNEL, **given)
    check("published" not in text and "ports:" not in text, "a port is published")
    contains(text, "REAL_IP_HEADER: CF-Connecting-IP")
    for name in given:
        rest = {key: value for key, value in given.items() if key != name}
        done = _compose("config", files=(BASE, TUNNEL), **rest)
        check(done.returncode != 0, f"{name} is not asked for")
        contains(done.stderr, name)


def _docker(*words):
    return subprocess.run(["docker", "-H", engine.host(), *words], check=True, capture_output=True, text=True).stdout.strip()


class _Project:
    """Built and started with the tests' engine, whose ports are not published: nginx is asked at its own address."""

    def __init__(self):
        self.name = "sandcgitest" + secrets.token_hex(3)
        self.environment = {"DOCKER_HOST": engine.host(), "DOCKER_BUILDKIT": "0", "DOCKER_SOCKET": engine.socket_path(),
                            "SANDCGI_DATA": new_folder("compose")}
        at_test_end(self.do, "down", "-v", "--rmi", "local", "-t", "20")

    def do(self, *words):
        done = _compose("-p", self.name, *words, files=(BASE,), **self.environment)
        equal(done.returncode, 0, done.stdout[-1000:] + done.stderr[-2000:])
        return done.stdout

    def container(self, service):
        return self.do("ps", "-q", service).strip()

    def state(self, service, field):
        return json.loads(_docker("inspect", "-f", "{{json .State}}", self.container(service)))[field]


@test("booted by docker-compose: healthy, confined, runners built, a program runs and its file is served", timeout=1800)
def _():
    if not os.environ.get("SANDCGI_TEST_COMPOSE"):
        raise Skip("takes minutes: tests/run.sh --compose")
    project = _Project()
    project.do("build")
    project.do("up", "-d")
    wait_until(lambda: project.state("nginx", "Health")["Status"] == "healthy", 60, "nginx is healthy", pause=1)
    wait_until(lambda: project.state("runners", "Status") == "exited", 300, "the runners are built", pause=1)
    equal(project.state("runners", "ExitCode"), 0, _docker("logs", project.container("runners")))
    address = _docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", project.container("nginx"))
    token = _docker("exec", project.container("sandcgi"), "sed", "-n", "s/^MCP_API_TOKEN=//p", "/etc/sandcgi/sandcgi.conf")
    client = Client(f"http://{address}:8080", token)
    client.conversation = "c" + secrets.token_hex(6)
    headers = client.headers
    client.headers = lambda extra=None: headers(extra) | {"Host": "localhost:8080"}
    result = client.run("open('a.txt', 'w').write('hi'); print(6 * 7)")
    equal(result["stdout"], "42\n")
    link = result["files"][0]["url"].replace("localhost:8080", f"{address}:8080")
    equal(client.download(link).body, b"hi")
    for service in ("sandcgi", "nginx", "runners"):
        config = json.loads(_docker("inspect", "-f", "{{json .HostConfig}}", project.container(service)))
        equal((config["ReadonlyRootfs"], config["CapDrop"], config["Privileged"]), (True, ["ALL"], False), service)

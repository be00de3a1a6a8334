"""The Compose files: what docker-compose makes of them, and a boot of all of it, in an engine that no other test uses: it makes the
images of the runners anew."""
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import engine
import rights
import runs
from clone import make_clone
from harness import TOP, Failed, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until
from mcp import Client, end_run
from sites import clean_environment
from streams import open_modern

BASE, TUNNEL = "docker-compose.yml", "docker-compose.cloudflare.yml"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NODE_IMAGE = "node:22-trixie-slim"


def _compose(*words, files=(), folder=TOP, **environment):
    if not shutil.which("docker-compose"):
        raise Skip("docker-compose is not installed")
    names = [word for name in files for word in ("-f", name)]
    return subprocess.run(["docker-compose", *names, *words], cwd=folder, env=clean_environment() | environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def _services(*files, **environment):
    done = _compose("config", files=files, **environment)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


@test("docker-compose takes the files; the tunnel's publishes no port, and says what it must be given")
def _():
    contains(_services(SANDCGI_DATA="/data"), "127.0.0.1:8080:8080/tcp")
    contains(_services(SANDCGI_BIND="127.0.0.1:21090"), "BIND: 127.0.0.1:21090")
    equal(_services(NGINX_PROFILES="none").count("NGINX_PROFILES: none"), 2, "of the server and of nginx")
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


def _shell(function, *words):
    """A function of the scripts that prepare Node and the page; what it prints."""
    script = f'project=$1; shift; source "$project/tests/lib/node.sh"; source "$project/nginx/setup/page.sh"; {function} "$@"'
    done = subprocess.run(["bash", "-c", script, "bash", TOP, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    equal(done.returncode, 0, f"{function}: {done.stderr[-1000:]}")
    return done.stdout.strip()


class _Project:
    """Built from a tree that has the page, as a tarball has, and started with the tests' engine, whose ports are not
    published: a port of this machine is passed on to nginx's own address."""

    def __init__(self):
        self.name = "sandcgitest" + secrets.token_hex(3)
        self.folder = new_folder("compose") + "/sandcgi"
        make_clone(self.folder)
        shipped = f"{self.folder}/nginx/page/made"
        if not os.path.exists(shipped):
            _shell("make_page", shipped)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{self.listener.getsockname()[1]}"
        self.data = new_folder("compose-data")
        self.environment = {"DOCKER_HOST": engine.host(), "DOCKER_BUILDKIT": "0", "DOCKER_SOCKET": engine.socket_path(),
                            "SANDCGI_DATA": self.data, "SANDCGI_PUBLIC_URL": self.url}
        if os.path.exists(CERTIFICATES):
            self.environment["SANDCGI_CA"] = CERTIFICATES
        self._stand_in()
        at_test_end(self.do, "down", "-v", "--rmi", "all", "-t", "20")
        at_test_end(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def _stand_in():
        """Node is not needed where the page is there; the image is, and no registry may be in reach."""
        if not engine.has_image(NODE_IMAGE):
            engine.tag("debian:trixie-slim", *NODE_IMAGE.split(":"))
            at_test_end(engine.remove_image, NODE_IMAGE)

    def do(self, *words):
        done = _compose("-p", self.name, *words, files=(BASE,), folder=self.folder, **self.environment)
        equal(done.returncode, 0, done.stdout[-1000:] + done.stderr[-2000:])
        return done.stdout

    def container(self, service):
        return self.do("ps", "-q", service).strip()

    def state(self, service, field):
        return json.loads(_docker("inspect", "-f", "{{json .State}}", self.container(service)))[field]

    def wait_healthy(self):
        for service in ("sandcgi", "nginx"):
            wait_until(lambda one=service: self.state(one, "Health")["Status"] == "healthy", 60, f"{service} is healthy", pause=1)

    def token(self):
        return self.do("exec", "-T", "sandcgi", "sed", "-n", "s/^MCP_API_TOKEN=//p", "/etc/sandcgi/sandcgi.conf").strip()

    def client(self):
        one = Client(self.url, self.token(), address=self.listener.getsockname())
        one.conversation = "c" + secrets.token_hex(6)
        return one

    def change_name(self, name):
        """Another SANDCGI_PUBLIC_URL, with what the page says for it."""
        self.url = f"http://{name}:{self.listener.getsockname()[1]}"
        self.environment["SANDCGI_PUBLIC_URL"] = self.url
        self.do("up", "-d", "-t", "30")
        self.wait_healthy()

    def left(self):
        """What the engine has of the project."""
        label = f"label=com.docker.compose.project={self.name}"
        return [line for words in (("ps", "-aq"), ("volume", "ls", "-q"), ("network", "ls", "-q"))
                for line in _docker(*words, "--filter", label).splitlines()]

    def server_containers(self):
        return engine.of_instance(engine.instance(self.data))

    # ---- the published port ----

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        address = _docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.container("nginx"))
        origin = socket.create_connection((address, 8080))
        threading.Thread(target=_relay, args=(origin, client), daemon=True).start()
        _relay(client, origin)


def _relay(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def _sdk_session(project):
    """The analysis of tests/conformance by the official SDK's client."""
    node = _shell("node_find && printf %s \"$NODE\"")
    options = {"folder": _shell("node_install", f"{TOP}/tests/conformance"), "url": f"{project.url}/mcp/api", "token": project.token()}
    done = subprocess.run([node, f"{TOP}/tests/conformance/analysis.mjs", json.dumps(options)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False)
    equal((done.returncode, [line for line in done.stdout.splitlines() if line.startswith("FAILED")]), (0, []), done.stderr[-1000:])
    contains(done.stdout, "ok ")


def _first_answer(project):
    try:
        return project.client().run("echo 42", "bash")["stdout"] == "42\n"
    except (OSError, http.client.HTTPException, Failed):
        return False


def _check_build(project):
    """The server knows its commit; the runner's image has the stamp that start.sh gives it."""
    if os.path.exists(f"{project.folder}/.git"):
        commit = subprocess.run(["git", "-C", project.folder, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        contains(project.do("exec", "-T", "sandcgi", "sandcgi", "version"), f"+0.g{commit}\n")
    stamp = _docker("image", "inspect", "-f", '{{index .Config.Labels "sandbox.build"}}', "sandcgi-runner-workbench:latest")
    wanted = subprocess.run([f"{project.folder}/runners/build.sh", "--fingerprint"], capture_output=True, text=True, check=True).stdout
    equal(f"workbench {stamp}\n", wanted)


def _check_rights(project):
    """In neither container a file with a secret is readable for the workers' account, nginx's or another."""
    def shown(path):
        return project.do("exec", "-T", "sandcgi", "cat", path)
    secrets_of = [project.token(), project.do("exec", "-T", "sandcgi", "sed", "-n", "s/^FILE_SECRET=//p", "/etc/sandcgi/sandcgi.conf").strip(),
                  shown("/etc/sandcgi/front-secret").strip(), rights.key_of(shown("/etc/sandcgi/nginx/file-key.conf"))]
    for service, accounts in ("sandcgi", ("sandcgi", "www-data", "nobody")), ("nginx", ("www-data", "nobody")):
        rights.check_closed(lambda words, where=service: project.do("exec", "-T", where, *words), accounts, secrets_of, ("/etc", "/run", "/var", "/tmp"), 4)


def _check_doctor(project):
    """It knows where it is, finds nothing wrong, and says so."""
    lines = project.do("exec", "-T", "sandcgi", "sandcgi", "doctor").splitlines()
    equal([line for line in lines if line.startswith("wrong")], [])
    contains("\n".join(lines), "http://nginx:8080/healthz answers 200")
    notes = sum(line.startswith("note ") for line in lines)
    equal(lines[-1], f"0 wrong, {notes} to note" if notes else "ok")


@test("booted by docker-compose: healthy, confined, runners built; the SDK's client, files, page and streams work, also after a restart, with another public name, and with containers made "
      "anew while programs run; down leaves nothing",
      timeout=1800)
def _():
    project = _Project()
    project.do("build")
    began = time.monotonic()
    project.do("up", "-d")
    wait_until(lambda: project.state("sandcgi", "Health")["Status"] == "healthy" and _first_answer(project), 100, "the first answer", pause=0.2)
    print(f"    {time.monotonic() - began:.1f} s from docker-compose up to the first program's answer, with all images there", flush=True)
    project.wait_healthy()
    wait_until(lambda: project.state("runners", "Status") == "exited", 900, "the runners are built", pause=1)
    equal(project.state("runners", "ExitCode"), 0, _docker("logs", project.container("runners")))
    for service in ("sandcgi", "nginx", "runners"):
        config = json.loads(_docker("inspect", "-f", "{{json .HostConfig}}", project.container(service)))
        equal((config["ReadonlyRootfs"], config["CapDrop"], config["Privileged"]), (True, ["ALL"], False), service)
    _check_build(project)
    _check_rights(project)
    _check_doctor(project)
    client = project.client()
    result = client.run("open('a.txt', 'w').write('hi'); print(6 * 7)")
    equal(result["stdout"], "42\n")
    link = result["files"][0]["url"]
    equal(client.download(link).body, b"hi")
    upload = urllib.parse.urlsplit(client.structured("create_upload", {"conversationId": client.conversation, "filename": "up.bin"})["url"])
    equal(client.http("PUT", f"{upload.path}?{upload.query}", b"u" * 300_000).status, 201)
    equal(client.run("wc -c <up.bin", "bash")["stdout"], "300000\n")
    _sdk_session(project)
    page = client.http("GET", "/")
    equal((page.status, page.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
    contains(page.body.decode(), "<title>")
    params = {"name": "run_code", "arguments": {"conversationId": client.conversation, "language": "bash", "code": f"echo one; {runs.UNTIL_GO}echo two"}}
    stream = open_modern(client.fresh(), "tools/call", params, name="run_code", meta={"progressToken": "p"}).begin()
    stream.wait_for("notifications/progress", 2)
    runs.go(client)
    equal(stream.result()["result"]["structuredContent"]["stdout"], "one\ntwo\n")
    templates = project.do("exec", "-T", "nginx", "sh", "-c", "cat /usr/share/sandcgi/nginx/*.in | cksum")
    equal(templates, subprocess.run("cat nginx/*.in | cksum", shell=True, cwd=project.folder, capture_output=True, text=True, check=True).stdout,
          "the image of nginx changes with the templates")
    path = urllib.parse.urlsplit(link).path
    project.do("restart", "-t", "30")
    project.wait_healthy()
    project.change_name("sandbox.example.org")
    named = project.client()
    _check_doctor(project)  # no name server of this machine knows the name
    contains(named.run("echo x >named.txt", "bash")["files"][0]["url"], f"{project.url}/files/")
    equal(named.http("GET", path).body, b"hi")
    project.do("exec", "-T", "sandcgi", "sh", "-c", "echo SANDBOX_URL_TTL=1h >>/etc/sandcgi/sandcgi.conf")
    in_background, waited = runs.begin(named, "sleep 12; echo later", timeout=60), named.begin_run("sleep 12; echo over", "bash")
    wait_until(lambda: len([one for one in runs.listed(named) if one["status"] == "running"]) == 2, 20, "both programs run")
    project.do("up", "-d", "--force-recreate", "-t", "60")  # as after an upgrade
    project.wait_healthy()
    later = project.client()
    equal((later.token, later.http("GET", path).status), (client.token, 403), "a link without a signature")
    later.conversation = client.conversation
    signed = urllib.parse.urlsplit(later.run("echo -n signed >signed.txt", "bash")["files"][0]["url"])
    equal(later.http("GET", f"{signed.path}?{signed.query}").body, b"signed")
    equal(later.run("cat a.txt", "bash")["stdout"], "hi")
    result, status = end_run(waited, 20)
    equal((status, result["stdout"]), (200, "over\n"), "the call that was waited for")
    later.conversation = named.conversation
    equal(runs.look(later, in_background)["stdout"], "later\n", "a program in the background has ended well")
    check(project.left(), "nothing of the project is found while it runs")
    wait_until(project.server_containers, 60, "a container of the server is found while it runs")
    project.do("down", "-v", "-t", "20")
    equal(project.left(), [], "left after the end")
    equal(project.server_containers(), [], "containers of the server")

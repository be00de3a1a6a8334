"""A server that takes over from another one, as a container of a new version does from the one of before; drain; the nodes of an edge."""
import http.server
import json
import os
import shutil
import signal
import socketserver
import ssl
import subprocess
import threading
import time

import sites
from harness import IS_ROOT, TOP, Skip, at_test_end, check, contains, equal, holds_for, new_folder, test, wait_until
from mcp import end_run
from stdio import Stdio


class Updated:
    """A site whose server is replaced by another one on the same sockets."""

    def __init__(self):
        self.site = sites.own({"SANDCGI_TAKEOVER": "true", "SANDCGI_METRICS": ""})
        self.before = self.site.process

    def start_next(self, **settings):
        self.site.settings |= settings
        self.site.write_config()
        following = self.site.start_server()
        at_test_end(_end, self.before)
        return following

    def taken_over(self):
        return self.site.log().count("took the sockets over")


def _end(process):
    if process.poll() is None:
        process.terminate()
        process.wait(60)


@test("a new server takes over from the one that runs: no call is refused, and a program of the old one ends well", core=True, timeout=120)
def _():
    pair = Updated()
    site = pair.site
    client, slow = site.client(), sites.new_conversation(site.client())
    slow.run("echo 1 > count", "bash")
    connection = slow.begin_run("until [ -e go ]; do sleep 0.1; done; cat count", "bash")
    wait_until(site.containers, 10, "a container")
    answers, over = [], threading.Event()

    def ask():
        while not over.wait(0.02):
            answers.append(client.fresh().request("ping").status)
    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    following = pair.start_next()
    wait_until(pair.taken_over, 60, "the new one has the sockets")
    check(pair.before.poll() is None, "the old one runs")
    pair.before.send_signal(signal.SIGTERM)
    client.fresh().upload("go", b"", slow.conversation)
    result, status = end_run(connection, 60)
    equal((status, result["status"], result["stdout"]), (200, "ok", "1\n"))
    equal(pair.before.wait(60), 0, "exit status of the old one")
    wait_until(lambda: len(answers) > 20, 20, "calls meanwhile")
    over.set()
    asker.join()
    equal(set(answers), {200})
    check(following.poll() is None, "the new one runs")
    equal(slow.run("cat count", "bash")["stdout"], "1\n")


@test("a new server that can run nothing leaves the sockets to the one that runs")
def _():
    pair = Updated()
    site = pair.site
    following = pair.start_next(DOCKER_HOST=f"unix://{site.folder}/nothing.sock")
    holds_for(lambda: following.poll() is None and not pair.taken_over(), 2, "it waits")
    following.terminate()
    equal(following.wait(30), 0)
    site.process = pair.before
    equal(sites.new_conversation(site.client()).run("echo here", "bash")["stdout"], "here\n")


@test("without SANDCGI_TAKEOVER a second server does not start")
def _():
    site = sites.own()
    before = site.process
    second = site.start_server()
    equal(second.wait(30), 1)
    site.process = before
    contains(site.log(), f"SANDBOX_ROOT {site.root}: another server (process {before.pid}) uses it")


# ---- one server for each SANDBOX_ROOT ----

def _another(site, **settings):
    """A server with other sockets in the same SANDBOX_ROOT; (exit status, None: it serves; what it said)."""
    other = sites.own({"SANDBOX_ROOT": site.root, "FILE_SECRET": site.settings["FILE_SECRET"]} | settings, start=False)
    process = other.start_server()
    wait_until(lambda: process.poll() is not None or " starts audit=start" in other.log(), 20, "it starts or ends")
    return process.poll(), other


@test("a server with other sockets in the same SANDBOX_ROOT does not start, and says whose it is; what works beside a server does; after kill -9 the next starts", timeout=120)
def _():
    site = sites.own({"SANDCGI_METRICS": ""})
    equal(sites.new_conversation(site.client()).run("echo kept > kept", "bash")["status"], "ok")
    told = f"SANDBOX_ROOT {site.root}: another server (process {site.process.pid}) uses it; end that one, or set another path"
    for settings in ({}, {"SANDCGI_TAKEOVER": "true"}):
        status, other = _another(site, **settings)
        equal((status, other.log().partition(" error guard: ")[2]), (1, f"{told} audit=start-refused\n"), settings)
    reloads = site.log().count("audit=reload")
    site.reload()
    wait_until(lambda: site.log().count("audit=reload") > reloads, 20, "a reload")
    equal(_another(site)[0], 1, "after a reload")

    def does(*words):
        done = subprocess.run([site.binary, *words, "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=False)
        check(done.returncode == 0 or words[0] == "doctor", f"{words}: {done.stderr}")
        return done.stdout
    saved = f"{new_folder('saved')}/all.tar"
    does("backup", saved)
    does("restore", "--replace", saved)
    does("check")
    contains(does("doctor"), "engine")
    beside = Stdio(site.config)
    beside.initialize()
    run = {"name": "run_code", "arguments": {"conversationId": "c", "language": "bash", "code": "echo beside"}}
    equal(beside.result("tools/call", run)["structuredContent"]["stdout"], "beside\n")
    alone = Stdio(site.config, environment={"SANDCGI_BROKER": f"{site.folder}/none.sock"})
    alone.initialize()
    equal(alone.result("tools/call", run)["structuredContent"]["stdout"], "beside\n", "with a broker of its own")
    site.process.kill()
    site.process.wait()
    status, other = _another(site)
    equal(status, None, other.log())


@test("a server that was told to end leaves SANDBOX_ROOT to the next, while its last program runs")
def _():
    site = sites.own({"SANDCGI_METRICS": ""})
    client = sites.new_conversation(site.client())
    connection = client.begin_run("sleep 4; echo over", "bash")
    wait_until(site.containers, 10, "a container")
    site.process.terminate()
    wait_until(lambda: _another(site)[0] is None, 20, "the next serves")
    result, _status = end_run(connection, 30)
    equal(result["stdout"], "over\n")


@test("after a takeover HUP reloads, and the next server takes over, too", timeout=120)
def _():
    pair = Updated()
    site = pair.site
    pair.start_next()
    wait_until(pair.taken_over, 60, "the second has the sockets")
    _end(pair.before)
    pair.before = site.process
    site.reload()
    wait_until(lambda: "settings reloaded" in site.log(), 20, "it reloads")
    equal(sites.new_conversation(site.client()).run("echo here", "bash")["stdout"], "here\n")
    pair.start_next()
    wait_until(lambda: pair.taken_over() == 2, 60, "the third has the sockets")
    _end(pair.before)
    equal(sites.new_conversation(site.client()).run("echo there", "bash")["stdout"], "there\n")


def _ready(site):
    return site.plain_client().http("GET", "/readyz").status


@test("drain: /readyz answers 503, the program ends well, then the server ends", core=True)
def _():
    site = sites.own()
    wait_until(lambda: _ready(site) == 200, 30, "it is ready")
    client = sites.new_conversation(site.client())
    connection = client.begin_run("until [ -e go ]; do sleep 0.1; done; echo done", "bash")
    wait_until(site.containers, 10, "a container")
    with subprocess.Popen([site.binary, "drain", "--config", site.config], env=site.tool_environment()) as drain:
        wait_until(lambda: _ready(site) == 503, 10, "it is not ready")
        equal(site.plain_client().http("GET", "/healthz").status, 200)
        equal(client.request("ping").status, 200)
        client.upload("go", b"")
        result, status = end_run(connection, 30)
        equal((status, result["status"], result["stdout"]), (200, "ok", "done\n"))
        equal(drain.wait(60), 0, "exit status of drain")
    equal(site.process.wait(10), 0, "exit status")


@test("drain does not wait for ever; a reload leaves the server draining, and a restart takes it back")
def _():
    site = sites.own()
    os.kill(site.process.pid, signal.SIGURG)
    wait_until(lambda: _ready(site) == 503, 10, "it is not ready")
    site.reload()
    wait_until(lambda: "the earlier generation has ended" in site.log(), 20, "it reloads")
    equal(_ready(site), 503)
    equal(subprocess.run([site.binary, "restart", "--config", site.config], env=site.tool_environment(), timeout=60, check=False).returncode, 0)
    wait_until(lambda: _ready(site) == 200, 30, "it is ready")
    client = sites.new_conversation(site.client())
    connection = client.begin_run("sleep 3; echo done", "bash")
    wait_until(site.containers, 10, "a container")
    drain = subprocess.run([site.binary, "drain", "--wait", "100ms", "--config", site.config], env=site.tool_environment(), timeout=60, check=False)
    equal(drain.returncode, 0)
    result, _status = end_run(connection, 30)
    equal(result["stdout"], "done\n")  # TERM waits for it


@test("drain without a server says so")
def _():
    site = sites.own(start=False)
    site.write_config()
    done = subprocess.run([site.binary, "drain", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=False)
    equal(done.returncode, 1)
    contains(done.stderr, "no process listens there")


# ---- the nodes of an edge ----

class _Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Swarm:
    """What a manager's engine answers, as far as the nodes need it."""

    def __init__(self, folder):
        self.path = f"{folder}/engine.sock"
        self.nodes = {}
        self.asked = []
        swarm = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                swarm.asked.append(self.path)
                answer = json.dumps(swarm.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Api-Version", "1.41")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def address_string(self):
                return "unix"

            def log_message(self, *_arguments):
                pass
        self.server = _Unix(self.path, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        at_test_end(self.server.shutdown)

    def answer(self, path):
        if "/services" in path:
            return [{"Spec": {"Name": "front"}, "Endpoint": {"Ports": [{"PublishMode": "host", "PublishedPort": 8080}]}}]
        if "/nodes" in path:
            return [{"ID": name, "Description": {"Hostname": name}, "Spec": {"Availability": availability},
                     "Status": {"State": state, "Addr": f"10.0.0.{i}"}} for i, (name, (availability, state)) in enumerate(self.nodes.items(), 1)]
        if "/tasks" in path:
            return [{"NodeID": name, "DesiredState": "running", "Status": {"State": "running"}} for name, (_, state) in self.nodes.items() if state == "ready"]
        return "OK"


def _listed(path):
    with open(path, encoding="utf8") as lines:
        return [line[3:].strip() for line in lines if line.startswith("#: ")]


@test("sandcgi nodes follows a Swarm: a node more, a silent one, a drained one, the control plane away")
def _():
    folder = new_folder("nodes")
    swarm = Swarm(folder)
    swarm.nodes = {"n1": ("active", "ready"), "n2": ("active", "ready"), "n3": ("active", "down")}
    rendered, told = f"{folder}/nodes.conf", f"{folder}/told"
    command = [sites.BINARY, "nodes", "--from", "swarm", "--service", "front", "--render", rendered, "--reload", f"echo x >> {told}",
               "--watch", "--every", "100ms", "--keep", "1s"]
    with subprocess.Popen(command, env=os.environ | {"DOCKER_HOST": f"unix://{swarm.path}"}) as process:
        at_test_end(_end, process)
        wait_until(lambda: os.path.exists(told), 10, "the first list")
        equal(_listed(rendered), ["n1 10.0.0.1:8080", "n2 10.0.0.2:8080"])
        swarm.nodes["n3"] = ("active", "ready")
        wait_until(lambda: len(_listed(rendered)) == 3, 10, "a node more")
        swarm.nodes["n2"] = ("active", "down")
        seen = len(swarm.asked)
        wait_until(lambda: len(swarm.asked) > seen + 60, 20, "many looks")
        equal(len(_listed(rendered)), 3)
        swarm.nodes["n3"] = ("drain", "ready")
        wait_until(lambda: "leaving" in "".join(_listed(rendered)), 10, "n3 leaves")
        del swarm.nodes["n3"]
        wait_until(lambda: len(_listed(rendered)) == 2, 20, "n3 has gone")
        before = os.stat(rendered)
        os.rename(swarm.path, swarm.path + ".away")
        time.sleep(1.5)
        os.rename(swarm.path + ".away", swarm.path)
        seen = len(swarm.asked)
        wait_until(lambda: len(swarm.asked) > seen + 6, 10, "it asks again")
        equal(os.stat(rendered).st_ino, before.st_ino, "the file")
        process.terminate()
        equal(process.wait(10), 0, "exit status")
    with open(told, encoding="utf8") as lines:
        equal(len(lines.readlines()), 4, "reloads: first, n3, n3 leaves, n3 gone")


class ApiServer:
    """Kubernetes' API server, as far as the nodes need it."""

    def __init__(self):
        self.asked, self.status = [], 200
        self.slices = [{"addressType": "IPv4", "ports": [{"name": "http", "port": 8080}],
                        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": "worker-1"}]}]
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append((self.path, self.headers["Authorization"]))
                answer = json.dumps({"kind": "EndpointSliceList", "metadata": {}, "items": server.slices}).encode()
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sites.certificate())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        at_test_end(self.server.shutdown)

    def nodes(self, rendered, ca):
        """sandcgi nodes where a pod's account lies; its status and what it says."""
        account = "/run/secrets/kubernetes.io/serviceaccount"
        script = (f'set -e; ca=$(cat "$1"); shift; mount -t tmpfs none /run; mkdir -p {account}; cd {account}; echo "$ca" >ca.crt; echo token1 >token; '
                  'printf ns1 >namespace; exec "$@"')
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", ca, sites.BINARY, "nodes",
                               "--from", "kubernetes", "--service", "front", "--render", rendered], capture_output=True, text=True, check=False,
                              env=os.environ | {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(self.server.server_port)})
        return done.returncode, done.stderr


@test("sandcgi nodes asks Kubernetes with the pod's token, and believes its CA alone")
def _():
    if not IS_ROOT:
        raise Skip("needs root")
    api, rendered = ApiServer(), f"{new_folder('nodes')}/nodes.conf"
    cert, _key = sites.certificate()
    status, text = api.nodes(rendered, cert)
    equal(status, 0, text)
    check(_listed(rendered)[0].startswith("worker1") and _listed(rendered)[0].endswith(" 10.0.0.1:8080"), _listed(rendered))
    equal(api.asked, [("/apis/discovery.k8s.io/v1/namespaces/ns1/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dfront", "Bearer token1")])
    api.slices = []
    status, text = api.nodes(rendered, cert)
    equal((status, len(_listed(rendered))), (0, 1), "a short silence")
    api.status = 403
    status, text = api.nodes(rendered, cert)
    equal(status, 1)
    contains(text, "may not list endpointslices")
    status, text = api.nodes(rendered, "/etc/hostname")
    equal(status, 1)
    contains(text, "the API server")
    check("token1" not in text, text)


@test("sandcgi nodes needs what it is to do, and says so")
def _():
    def said(*words):
        done = subprocess.run([sites.BINARY, "nodes", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr + done.stdout
    folder = new_folder("nodes")
    for words, part in ((("--from", "consul"), "--from must be"), (("--from", "file"), "--render is missing"),
                        (("--from", "file", "--render", f"{folder}/n"), "--from file needs --file"),
                        (("--from", "swarm", "--render", f"{folder}/n"), "needs --service"),
                        (("--every",), "--every needs a value"), (("--name", ""), "--name")):
        status, text = said(*words)
        equal(status, 2, part)
        contains(text, part)
    with open(f"{folder}/list", "w", encoding="utf8") as out:
        out.write("n1 127.0.0.1:1\nn1 127.0.0.1:2\n")
    status, text = said("--from", "file", "--file", f"{folder}/list", "--render", f"{folder}/n")
    equal(status, 1)
    contains(text, "line 2: two nodes have the name n1")
    check(not os.path.exists(f"{folder}/n"), "nothing is written")
    equal(said("--name", "Worker-1")[0], 0)


# ---- the files for orchestrators ----

def _check_manifests(*paths):
    script = 'source "$1/tests/lib/node.sh"; node_find && folder=$(node_install "$1/tests/cluster/manifests") && shift && exec "$NODE" "$TOP/tests/cluster/manifests/check.mjs" "$folder" "$@"'
    return subprocess.run(["bash", "-c", script, "bash", TOP, *paths], env=os.environ | {"TOP": TOP}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


@test("the Kubernetes manifests have the form of their API", timeout=120)
def _():
    folder = f"{TOP}/nginx/cluster/kubernetes"
    done = _check_manifests(*(f"{folder}/{name}" for name in sorted(os.listdir(folder))))
    equal(done.returncode, 0, done.stdout + done.stderr[-1000:])
    equal(done.stdout.count("ok "), 10, done.stdout)
    with open(f"{folder}/node.yaml", encoding="utf-8") as file:
        text = file.read()
    wrong = f"{new_folder('manifests')}/wrong.yaml"
    for before, after in (("maxSurge: 1", "maxSurg: 1"), ("containerPort: 8080", "containerPort: http")):
        contains(text, before)
        with open(wrong, "w", encoding="utf-8") as file:
            file.write(text.replace(before, after))
        equal(_check_manifests(wrong).returncode, 1, after)


@test("docker stack takes the stack's file")
def _():
    if not shutil.which("docker"):
        raise Skip("docker is not installed")
    done = subprocess.run(["docker", "stack", "config", "-c", f"{TOP}/nginx/cluster/stack.yml"], capture_output=True, text=True, check=False,
                          env=os.environ | {"PUBLIC_BASE_URL": "https://sandbox.example.org"})
    equal(done.returncode, 0, done.stderr)
    contains(done.stdout, "order: start-first")

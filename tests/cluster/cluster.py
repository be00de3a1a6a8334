"""Nodes on ports of this machine, each with its own nginx, instance and files, over one engine; an edge in front of them."""
import json
import os
import re
import secrets
import signal
import subprocess

import engine
import procs
import sites
from harness import TOP, Failed, at_end, new_folder, wait_until
from mcp import Client


class Node(sites.Site):
    """A complete server that knows its name and the edge's secret."""

    def __init__(self, name, cluster, settings=None):
        self.name = name
        self.cluster = cluster
        super().__init__(cluster.settings | {"SANDCGI_NODE": name, "SANDBOX_INSTANCE": f"{cluster.name}-{name}"} | (settings or {}),
                         nginx={"REAL_IP_FROM": "127.0.0.1", "PARAM_HEADERS": "Conversation Run Sandbox"})
        self.token = cluster.token

    @property
    def address(self):
        return f"127.0.0.1:{self.http_port}"

    def direct(self):
        """A client that passes the edge by."""
        return Client(f"http://localhost:{self.http_port}", self.token)

    def kill(self):
        """As a machine that loses its power: everything at once, and the edge is refused."""
        procs.kill_family(self.nginx_process.pid)
        procs.kill_family(self.process.pid)
        self.nginx_process.wait()
        self.process.wait()

    def begin_again(self):
        """Another start with the same files."""
        for container in self.all_containers():
            engine.remove(container["Id"])
        self.start()

    def files_named(self, name):
        """The paths of such files in all its conversations."""
        return [os.path.join(folder, name) for folder, _, files in os.walk(self.root) if name in files]

    def notes(self):
        """About the conversations that it serves in their homes' stead."""
        folder = f"{self.root}/.sessions/.away"
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            try:
                with open(f"{folder}/{name}", encoding="utf-8") as file:
                    yield file.read()
            except OSError:
                pass

    def answers(self, status):
        """How many requests its nginx has answered so."""
        with open(f"{self.folder}/log/access.log", encoding="utf-8") as file:
            return len(re.findall(rf'" {status} ', file.read()))


class Edge:
    """nginx that hashes conversations to nodes."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.folder = new_folder("edge")
        self.https_port, self.http_port = sites.free_port(), sites.free_port()
        self.process = None
        for name in ("conf", "log", "tmp"):
            os.mkdir(f"{self.folder}/{name}")

    @property
    def base_url(self):
        return f"https://localhost:{self.https_port}"

    def write_nodes(self, nodes):
        with open(f"{self.folder}/nodes", "w", encoding="utf-8") as file:
            file.write("".join(f"{node.name} {node.address}\n" for node in nodes))
        subprocess.run([sites.BINARY, "nodes", "--from", "file", "--file", file.name, "--render", f"{self.folder}/conf/sandcgi-nodes.conf"],
                       check=True, capture_output=True, env=sites.clean_environment() | sites.SANITIZER_ENV)

    def _write_secrets(self):
        path = f"{self.folder}/conf/edge-secret.conf"
        with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(f'set $sandcgi_edge_secret "{self.cluster.edge_secret}";\n')
        subprocess.run([sites.BINARY, "token", "add", "--tenant", "default", "--token-stdin", "--file", f"{self.folder}/conf/tokens.map",
                        "--no-reload"], input=self.cluster.token, text=True, check=True, capture_output=True)
        return path

    def start(self, nodes):
        cert, key = sites.certificate()
        account = sites.web_account()
        self.write_nodes(nodes)
        values = {"NODES_FILE": f"{self.folder}/conf/sandcgi-nodes.conf", "EDGE_SECRET_CONF": self._write_secrets(),
                  "TOKENS_FILE": f"{self.folder}/conf/tokens.map", "RUN_DIR": self.folder, "LOG_DIR": f"{self.folder}/log",
                  "TMP_DIR": f"{self.folder}/tmp", "CERT": cert, "CERT_KEY": key, "HTTPS_PORT": self.https_port, "HTTP_PORT": self.http_port,
                  "USER": f"{account} {account}" if account else "", "RATE": 10000, "BURST": 10000, "CONNS": 500}
        done = subprocess.run([f"{TOP}/nginx/render.sh", f"{self.folder}/conf", *(f"{k}={v}" for k, v in values.items())],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"render.sh: {done.stderr}")
        with open(f"{self.folder}/log/nginx-start.log", "ab") as out:
            self.process = subprocess.Popen(
                [*sites.DIE_WITH_US, sites.nginx_binary(), "-c", f"{self.folder}/conf/nginx.conf", "-e", f"{self.folder}/log/nginx-error.log",
                 "-g", "daemon off;"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        at_end(self.stop)
        wait_until(self._answers, 10, "the edge answers")

    def _answers(self):
        if self.process.poll() is not None:
            with open(f"{self.folder}/log/nginx-start.log", encoding="utf-8") as file:
                raise Failed(f"the edge's nginx ended: {file.read()}")
        try:
            return Client(f"http://localhost:{self.http_port}", timeout=5).http("GET", "/healthz").status == 200
        except OSError:
            return False

    def reload(self, nodes):
        """Takes up other nodes, as "sandcgi nodes --reload" has it done."""
        before = procs.children(self.process.pid)
        self.write_nodes(nodes)
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not any(map(sites.accepts, before)), 20, "the edge knows the nodes")

    def stop(self):
        if self.process:
            procs.end(self.process, 40)


class Cluster:
    def __init__(self, names, settings=None):
        self.name = f"cluster-{secrets.token_hex(4)}"
        self.token, self.edge_secret = secrets.token_hex(24), secrets.token_hex(32)
        self.edge = Edge(self)
        self.settings = {"PUBLIC_BASE_URL": self.edge.base_url, "FILE_SECRET": secrets.token_hex(32), "MCP_API_TOKEN": self.token,
                         "SANDCGI_EDGE_SECRET": self.edge_secret, "SANDCGI_WORKERS": "4", "SANDCGI_LOG_LEVEL": "info"} | (settings or {})
        self.nodes = [Node(name, self) for name in names]

    def start(self):
        for node in self.nodes:
            at_end(node.stop)
            node.start_server()
            node.start_nginx()
        for node in self.nodes:
            node.wait_healthy()
        self.edge.start(self.nodes)
        return self

    def add(self, name):
        node = Node(name, self)
        at_end(node.stop)
        node.start()
        self.nodes.append(node)
        self.edge.reload(self.nodes)
        return node

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def client(self, timeout=60):
        return Client(self.edge.base_url, self.token, sites.certificate()[0], timeout)

    def homes(self, conversations):
        """The node of each, by what a program of it has left there."""
        return {conversation: [node.name for node in self.nodes if node.files_named(f"home-{conversation}")] for conversation in conversations}


def named(conversation):
    """The header that mirrors conversationId."""
    return {"Mcp-Param-Conversation": conversation}


def text_of(answer):
    return json.dumps(answer.json())

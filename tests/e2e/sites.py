"""Servers for tests: `sandcgi serve` behind a real nginx, with settings of the test's choice."""
import functools
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess

import engine
import pool
import procs
from harness import IS_ROOT, TOP, Failed, Skip, at_end, at_module_end, at_test_end, new_folder, wait_until
from mcp import Client

BINARY = os.environ.get("SANDCGI_TEST_BINARY") or os.path.join(TOP, "build/sandcgi")
SANITIZER_ENV = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=0",
                 "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
all_sites = []

_ports = []


def plain_binary():
    """The program without sanitizers, which keep freed memory around."""
    path = os.environ.get("SANDCGI_TEST_PLAIN_BINARY") or f"{TOP}/build-plain/sandcgi"
    if not os.path.exists(path):
        raise Failed(f"there is no {path}: SANDCGI_TEST_PLAIN_BINARY names one that is built without sanitizers")
    return path


def free_port():
    """Below those that the kernel gives to connections, which may be in use a moment later; no other process of tests has it."""
    while True:
        port, claim = random.randrange(10000, 32000), socket.socket(socket.AF_UNIX)
        try:
            with socket.socket() as sock:
                sock.bind(("", port))
            claim.bind(f"\0sandcgi-e2e-port-{port}")
        except OSError:
            claim.close()
            continue
        _ports.append(claim)
        return port


def clean_environment():
    """Ours without anything that would override the configuration file."""
    ours = ("SANDBOX_", "SANDCGI_", "DOCKER_", "FILE_SECRET", "PUBLIC_BASE_URL", "MCP_API_TOKEN")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


# For clients of stdio and CGI, which have no place of their own: results are objects, as at mcp.API.
OF_PROGRAMS = {"ANSWERS": "structured"}


@functools.cache
def certificate():
    """(certificate, key) for localhost, self-signed."""
    folder = new_folder("tls")
    cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


@functools.cache
def web_account():
    """The account nginx's workers run as; None when we are not root and nginx runs as we do."""
    if not IS_ROOT:
        return None
    for name in ("www-data", "nginx", "nobody"):
        try:
            pwd.getpwnam(name)
            return name
        except KeyError:
            pass
    raise Skip("there is no account for nginx's workers")


# What a test starts ends with the suite even when that is killed.
DIE_WITH_US = ["setpriv", "--pdeathsig", "TERM"]


def nginx_binary():
    for path in ("/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"):
        if os.path.exists(path):
            return path
    raise Skip("nginx is not installed")


def accepts(worker):
    """Does this process of nginx take new connections? After a reload those of before go on for a while."""
    try:
        with open(f"/proc/{worker}/cmdline", "rb") as file:
            title = file.read()
    except OSError:
        return False
    return title.strip(b"\0 ") != b"" and b"shutting down" not in title


class Site:
    """One server in a folder of its own. settings override the defaults; None leaves one out."""

    def __init__(self, settings=None, nginx=None, binary=BINARY, environment=None):
        self.folder = new_folder("site")
        self.binary = binary
        self.token = secrets.token_hex(24)
        self.secret = secrets.token_hex(24)
        self.https_port, self.http_port = free_port(), free_port()
        self.root = f"{self.folder}/sandboxes"
        self.front = f"{self.folder}/run/front.sock"
        self.hub = f"{self.folder}/run/hub.sock"
        self.config = f"{self.folder}/sandcgi.env"
        self.log_path = f"{self.folder}/log/sandcgi.log"
        self.process = self.nginx_process = None
        self.environment = environment or {}
        self.nginx_values = nginx or {}
        for name in ("run", "log", "conf", "tmp", "sandboxes"):
            os.mkdir(f"{self.folder}/{name}")
            os.chmod(f"{self.folder}/{name}", 0o755 if name != "sandboxes" else 0o700)
        self.settings = self.default_settings() | (settings or {})
        self.write_config()
        all_sites.append(self)

    @property
    def base_url(self):
        return f"https://localhost:{self.https_port}"

    @property
    def instance(self):
        return engine.instance(self.settings.get("SANDBOX_INSTANCE") or self.settings.get("SANDBOX_HOST_PATH") or self.root)

    def default_settings(self):
        return {
            "SANDBOX_ROOT": self.root,
            "FILE_SECRET": secrets.token_hex(32),
            "PUBLIC_BASE_URL": self.base_url,
            "MCP_API_TOKEN": self.token,
            "SANDCGI_LISTEN": self.front,
            "SANDCGI_LISTEN_GROUP": web_account(),
            "SANDCGI_HUB": self.hub,
            "SANDCGI_BROKER": f"{self.folder}/run/broker.sock",
            "SANDCGI_WORKERS": "6",
            "SANDCGI_USER": "nobody" if IS_ROOT else None,
            "SANDCGI_SECRET_FILE": f"{self.folder}/run/front-secret",
            "SANDCGI_LOG_LEVEL": "debug",
            "DOCKER_HOST": engine.host(),
            "SANDBOX_NETWORK": "none",  # else containers of the server's own test would be among them; network.py has the others
            "SANDBOX_LIMITS_CHECK": "trust",  # likewise; test_operators has the others
            "SANDBOX_IMAGES": "sandcgi-runner-*",  # other tests' images have other names; test_warm has the default
            "SANDBOX_MEMORY": "256m",  # bounds that tests reach soon; test_engine has the default
            "SANDBOX_CPUS": "0.5",
            "SANDBOX_TIMEOUT": "30s",
            "TOOLS": "all",  # test_toolsets has the others
            "SANDBOX_WARM": "",  # most tests look at the containers of their runs; test_warm has the others
        }

    def write_config(self):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("".join(f"{k}={v}\n" for k, v in self.settings.items() if v is not None))
        os.chmod(self.config, 0o600)
        self._write_secret()

    def _write_secret(self):
        for name, text in (("front-secret", self.secret + "\n"),
                           ("front-secret.conf", f"fastcgi_param SANDCGI_SECRET {self.secret};\n")):
            with open(f"{self.folder}/run/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(file.name, 0o600)

    def _write_file_key(self):
        path = f"{self.folder}/run/file-key.conf"
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            subprocess.run([self.binary, "file-key", "--config", self.config], check=True, stdout=file, env=self.tool_environment())
        return path

    # ---- start and stop ----

    def start(self, with_nginx=True, until_healthy=True):
        self.start_server()
        if with_nginx:
            self.start_nginx()
            if until_healthy:
                self.wait_healthy()
        return self

    def start_server(self, prefix=(), options=(), **popen):
        log = open(self.log_path, "ab")  # pylint: disable=consider-using-with
        with log:
            self.process = subprocess.Popen([*DIE_WITH_US, *prefix, self.binary, "serve", "--config", self.config, *options],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=clean_environment() | SANITIZER_ENV | self.environment, **popen)
        return self.process

    def _render_nginx(self):
        cert, key = certificate()
        account = web_account()
        values = {"RUN_DIR": f"{self.folder}/run", "LOG_DIR": f"{self.folder}/log", "TMP_DIR": f"{self.folder}/tmp", "CACHE_DIR": f"{self.folder}/tmp",
                  "SANDBOX_ROOT": self.root, "BACKEND": f"unix:{self.front}",
                  "HUB": f"unix:{self.hub}",
                  "OAUTH_BACKEND": f"unix:{self.folder}/run/oauth.sock" if self.settings.get("SANDCGI_OAUTH") == "builtin" else "",
                  "JUDGE": f"unix:{self.folder}/run/judge.sock" if self.settings.get("SANDCGI_OAUTH") else "", "PUBLIC_URL": self.settings["PUBLIC_BASE_URL"],
                  "SECRET_CONF": f"{self.folder}/run/front-secret.conf", "FILE_KEY_CONF": self._write_file_key(), "TOKENS_FILE": f"{self.folder}/conf/tokens.map",
                  "CERT": cert, "CERT_KEY": key, "HTTPS_PORT": self.https_port, "HTTP_PORT": self.http_port,
                  "USER": f"{account} {account}" if account else "", "RATE": 10000, "OAUTH_RATE": 10000, "BURST": 10000, "CONNS": 500,
                  "UPLOAD_MAX": self.settings.get("SANDBOX_UPLOAD_MAX", "2g"), "SIGNED_URLS": "1" if "SANDBOX_URL_TTL" in self.settings else "",
                  "STORE": "1" if "SANDBOX_STORE" in self.settings else "",
                  } | self.nginx_values
        done = subprocess.run([f"{TOP}/nginx/render.sh", f"{self.folder}/conf", *(f"{k}={v}" for k, v in values.items())],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"render.sh: {done.stderr}")

    def start_nginx(self):
        self.set_token("default", self.token)
        self._render_nginx()
        log = f"{self.folder}/log/nginx-start.log"
        with open(log, "ab") as out:
            self.nginx_process = subprocess.Popen(
                [*DIE_WITH_US, nginx_binary(), "-c", f"{self.folder}/conf/nginx.conf", "-e", f"{self.folder}/log/nginx-error.log",
                 "-g", "daemon off;"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def reload_nginx(self):
        """With nginx_values as they are now."""
        before = procs.children(self.nginx_process.pid)
        self._render_nginx()
        os.kill(self.nginx_process.pid, signal.SIGHUP)
        wait_until(lambda: not any(map(accepts, before)), 20, "nginx's new workers accept")

    def take_up_file_key(self):
        """What FILE_SECRET's change asks of nginx."""
        self._write_file_key()
        os.kill(self.nginx_process.pid, signal.SIGHUP)

    def set_token(self, tenant, token):
        reload, before = ["--no-reload"], []
        if self.nginx_process:
            reload, before = ["--reload", f"kill -HUP {self.nginx_process.pid}"], procs.children(self.nginx_process.pid)
        subprocess.run([self.binary, "token", "add", "--tenant", tenant, "--token-stdin", "--file", f"{self.folder}/conf/tokens.map", *reload],
                       input=token, text=True, check=True, capture_output=True)
        wait_until(lambda: not any(map(accepts, before)), 20, "nginx's workers know the token")

    def wait_healthy(self, seconds=30):
        client = Client(f"http://localhost:{self.http_port}", timeout=10)

        def healthy():
            if self.process.poll() is not None:
                raise Failed(f"sandcgi ended with {self.process.returncode}: {self.log()[-2000:]}")
            try:
                return client.http("GET", "/healthz").status == 200
            except OSError:
                return False
        wait_until(healthy, seconds, "/healthz answers 200")
        client.close()

    def stop(self):
        for process in (self.nginx_process, self.process):
            if process:
                procs.end(process, 40)
        self.process = self.nginx_process = None
        for container in self.all_containers():
            engine.remove(container["Id"])

    def reload(self):
        """Reads the settings again, as an administrator would ask for it."""
        self.write_config()
        os.kill(self.process.pid, signal.SIGHUP)

    # ---- looking inside ----

    def tool_environment(self):
        """For other commands of the binary."""
        return clean_environment() | SANITIZER_ENV | self.environment

    def client(self, timeout=120):
        return Client(self.base_url, self.token, certificate()[0], timeout)

    def client_of(self, tenant):
        """A client of that tenant, with a token of its own and in a new conversation."""
        token = secrets.token_hex(24)
        self.set_token(tenant, token)
        return new_conversation(self.client().with_token(token), tenant)

    def plain_client(self, timeout=120):
        return Client(f"http://localhost:{self.http_port}", self.token, None, timeout)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def all_containers(self):
        try:
            return engine.of_instance(self.instance)
        except OSError:
            return []

    def containers(self):
        """Those of runs: without warm containers."""
        found = self.all_containers()
        if not found or not self.settings["SANDBOX_WARM"]:
            return found
        waiting = {one["runId"] for one in pool.unclaimed(self)}
        return [one for one in found if one["Labels"]["sandbox.run"] not in waiting]

    def masters(self):
        """The children of the guard: the present master, which is the last, and those that answer their last calls."""
        return procs.children(self.process.pid)

    def processes(self):
        """Broker, hub and workers: the masters' children."""
        return [pid for master in self.masters() for pid in procs.children(master)]

    def broker(self):
        """The child of a master that holds SANDBOX_ROOT open."""
        for pid in self.processes():
            if self.root in procs.open_files(pid):
                return pid
        return None

    def hub_process(self):
        """The child of a master that accepts on the hub's socket."""
        for pid in self.processes():
            if self.hub in procs.unix_sockets(pid):
                return pid
        return None

    def workers(self):
        others = (self.broker(), self.hub_process())
        return [pid for pid in self.processes() if pid not in others]

    def settled_workers(self):
        """Those that stay: calls that lasted had others started, which end again."""
        n = int(self.settings["SANDCGI_WORKERS"])
        return wait_until(lambda: [*found] if len(found := self.workers()) == n else None, 20, f"{n} workers", 0.2)

    def run_children(self):
        """The broker's children that hold a run's lock."""
        return [pid for pid in procs.children(self.broker() or 0)
                if any("/.runs/" in name for name in procs.open_files(pid))]

    def housekeeper(self):
        runs = self.run_children()
        others = [pid for pid in procs.children(self.broker() or 0) if pid not in runs]
        return others[0] if others else None

    def busy_workers(self):
        """Workers that hold a connection besides the listening socket."""
        counts = {pid: sum(name.startswith("socket:") for name in procs.open_files(pid)) for pid in self.workers()}
        least = min(counts.values(), default=0)
        return [pid for pid, n in counts.items() if n > least]


def is_sandbox_user(uid):
    """May a program have this user, when SANDBOX_USER is not set?"""
    return 1879048192 <= int(uid) <= 2013265919 if IS_ROOT else int(uid) == os.getuid()


def own(settings=None, start=True, **arguments):
    """A server for one test."""
    site = Site(settings, **arguments)
    at_test_end(site.stop)
    return site.start() if start else site


def on_small_disk(mib, inodes, settings, at_its_end=at_test_end):
    """A server for one test, whose files are on a file system of their own."""
    if not IS_ROOT:
        raise Skip("only root can mount")
    image = f"{new_folder('disk')}/image"
    with open(image, "wb") as file:
        file.truncate(mib << 20)
    site = Site({"SANDBOX_TOTAL_MAX": "0"} | settings)
    at_its_end(site.stop)
    for command in (["mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(inodes), image], ["mount", "-o", "loop", image, site.root]):
        if not shutil.which(command[0]):
            raise Skip(f"there is no {command[0]}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skip(f"{command[0]}: {done.stderr.strip()}")
    at_its_end(subprocess.run, ["umount", "-l", site.root])
    return site.start()


def own_of_suite(settings=None, **arguments):
    """A server that lasts until the suite ends."""
    site = Site(settings, **arguments)
    at_end(site.stop)
    return site.start()


_of_module = {}


def _shared_in_module(key, make):
    if key not in _of_module:
        at_module_end(_of_module.pop, key, None)
        _of_module[key] = make()
    return _of_module[key]


def with_settings(nginx=None, binary=BINARY, **settings):
    """A server with these settings, shared by the tests of the module that want the same; no test breaks it."""
    def make():
        site = Site(settings, nginx, binary)
        at_module_end(site.stop)
        return site.start()
    return _shared_in_module((tuple(sorted(settings.items())), tuple(sorted((nginx or {}).items())), binary), make)


def on_small_disk_with(mib, inodes, **settings):
    """The same on a file system of its own."""
    return _shared_in_module((mib, inodes, tuple(sorted(settings.items()))), lambda: on_small_disk(mib, inodes, settings, at_module_end))


def shared():
    """The server that most tests of a module use; no test breaks it."""
    return with_settings()


def new_conversation(client, name="e2e"):
    client.conversation = f"{name}-{secrets.token_hex(6)}"
    return client


def client():
    """A client of the shared server with a conversation of its own."""
    return new_conversation(shared().client())

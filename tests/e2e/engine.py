"""The container engine by its REST API, as an observer: what is there, what does it look like."""
import contextlib
import hashlib
import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.parse

from harness import TOP, Failed, Skip, at_test_end, check, wait_until

WORKBENCH = "sandcgi-runner-workbench"

class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("engine", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def host():
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def socket_path():
    if not host().startswith("unix://"):
        raise Skip("the engine is not behind a Unix socket")
    return host().removeprefix("unix://")


def api(method, path, body=None, path_to_socket=None, ok=(200, 201, 204, 304)):
    connection = UnixConnection(path_to_socket or socket_path())
    try:
        data = json.dumps(body) if body is not None else None
        connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    if ok and answer.status not in ok:
        raise Failed(f"engine: {method} {path}: {answer.status} {raw[:300]!r}")
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw


def containers(**labels):
    """All containers, also stopped ones, with these labels; keys have _ for the dots."""
    wanted = {name.replace("_", "."): value for name, value in labels.items()}
    filters = urllib.parse.quote(json.dumps({"label": [f"{n}={v}" if v else n for n, v in wanted.items()]}))
    return api("GET", f"/containers/json?all=1&filters={filters}")


def instance(name):
    """The label of a server's containers; name: its SANDBOX_INSTANCE, or where its files are for the engine."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def of_instance(label):
    return containers(sandbox_managed="true", sandbox_instance=label)


def inspect(container_id):
    return api("GET", f"/containers/{container_id}/json")


class Updates:
    """Changes of containers' limits from now on. Afterwards the engine knows only its last 256 events, of all processes of tests."""

    def __init__(self):
        self.containers = []
        self.connection = UnixConnection(socket_path(), None)
        filters = urllib.parse.quote(json.dumps({"type": ["container"], "event": ["update"]}))
        self.connection.request("GET", f"/events?filters={filters}")
        self.answer = self.connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()
        at_test_end(self._end)

    def _end(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)

    def _read(self):
        with contextlib.suppress(OSError, http.client.HTTPException):  # at the end
            for line in self.answer:
                self.containers.append(json.loads(line)["Actor"]["ID"])

    def are(self, n, container):
        """Waits until so many are told."""
        wait_until(lambda: self.containers.count(container) >= n, 10, f"the limits of {container[:12]} were changed {n} times")
        check(self.containers.count(container) == n, f"changed {self.containers.count(container)} times instead of {n}")


def remove(container_id):
    api("DELETE", f"/containers/{container_id}?force=1&v=1", ok=None)


def image(name):
    return api("GET", f"/images/{urllib.parse.quote(name, safe='')}/json", ok=None)


def has_image(name):
    return "Id" in (image(name) or {})


def remove_image(name):
    api("DELETE", f"/images/{urllib.parse.quote(name, safe='')}?force=1", ok=None)


def tag(source, repository, name="latest"):
    api("POST", f"/images/{urllib.parse.quote(source, safe='')}/tag?repo={urllib.parse.quote(repository)}&tag={name}")


def shell_runner(language, more=""):
    """A Dockerfile: the workbench's bash under another name, as an image of that language alone."""
    return (f'FROM {WORKBENCH}\n{more}LABEL sandbox.language={language} sandbox.protocol=2 sandbox.install= sandbox.preload= sandbox.load=\n'
            'ENTRYPOINT ["/usr/local/bin/entry", "/tmp/script.sh", "bash", "/tmp/script.sh"]\n')


def build(name, dockerfile, folder, files=None):
    """Builds an image from texts."""
    for file_name, text in {"Dockerfile": dockerfile, **(files or {})}.items():
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as out:
            out.write(text)
    done = subprocess.run(["docker", "build", "-q", "-t", name, folder], env=os.environ | {"DOCKER_BUILDKIT": "0"},
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise Failed(f"docker build: {done.stderr[-600:]}")


# ---- the tests' own engine, which may be killed ----

def is_ours():
    return os.environ.get("SANDCGI_TEST_ENGINE") == "ours"


def pid():
    with open(os.path.join(os.path.dirname(socket_path()), "docker.pid"), encoding="ascii") as file:
        return int(file.read())


def kill():
    if not is_ours():
        raise Skip("DOCKER_HOST names an engine that is not the tests' own: it is not killed")
    victim = pid()
    os.kill(victim, 9)
    wait_until(lambda: not os.path.exists(f"/proc/{victim}"), 20, "dockerd is gone")


def start():
    subprocess.run([os.path.join(TOP, "tests/lib/engine.sh"), "start"], check=True, timeout=90)

"""A machine that has an nginx: tests/nginx/groups_walk.py's, with the tests' engine, in which sandcgi is installed by "make install"."""
import contextlib
import os
import pathlib
import secrets
import subprocess
import sys

import engine
import procs
from harness import IS_ROOT, TOP, Failed, Skip, at_test_end, new_folder
from mcp import API, Client
from sites import BINARY, DIE_WITH_US, SANITIZER_ENV, free_port

sys.path.append(f"{TOP}/tests/nginx")
import groups_walk  # noqa: E402  pylint: disable=wrong-import-position

NAME = "sandbox.example.org"
BUILD = os.path.dirname(os.path.abspath(BINARY))
# Of the other contents of /run and /var/lib the machine has the engine's socket, and a folder for files that the engine sees, too.
WITH_ENGINE = r"""
touch "$W/engine.sock" && mount --bind "$ENGINE" "$W/engine.sock"
""" + groups_walk.MACHINE + r"""
mkdir -p "$W/state" /var/lib/sandcgi && mount --bind "$W/state" /var/lib/sandcgi
"""
# What is typed comes by standard input; each answer ends with a line "done STATUS".
INSTALLED = WITH_ENGINE + r"""
mkdir "$W/local" && mount --bind "$W/local" /usr/local && rm "$W/bin/sandcgi"
export PATH=/usr/local/bin:$PATH
make_install() { make -C "$BUILD" install >"$W/install.log" 2>&1 || { tail -n 20 "$W/install.log"; false; }; }
while IFS= read -r typed; do
    status=0
    eval "$typed" 2>&1 || status=$?
    echo "done $status"
done
"""


def engine_environment(folder):
    """Of a script that has WITH_ENGINE in it; its containers end with the test."""
    files = f"{folder}/state/sandboxes"
    at_test_end(lambda: [engine.remove(one["Id"]) for one in engine.of_instance(engine.instance(files))])
    return {"ENGINE": engine.socket_path(), "DOCKER_HOST": f"unix://{folder}/engine.sock", "SANDBOX_HOST_PATH": files, "SANDBOX_NETWORK": "none"}


class Machine:
    """below: "", or the path of everything, such as "/sandbox"."""

    def __init__(self, below=""):
        if not IS_ROOT:
            raise Skip("needs root")
        if not os.path.exists(f"{BUILD}/Makefile"):
            raise Skip(f"there is no Makefile beside {BINARY} to install from")
        self.folder, self.below, self.port = new_folder("machine"), below, free_port()
        commands = groups_walk.documented_commands("existing nginx")
        if below:
            commands = commands.replace(NAME, f"{NAME} --path {below}/", 1)
        pathlib.Path(self.folder, "commands").write_text(commands, encoding="utf-8")
        environment = engine_environment(self.folder) | SANITIZER_ENV | {"BUILD": BUILD}
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*DIE_WITH_US, *groups_walk.NAMESPACES, "bash", "-c", INSTALLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=groups_walk.machine_environment(self.folder, self.port, environment))
        at_test_end(self._end)
        self.do("make_install")

    def _end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        procs.end(self.process, 30)

    def do(self, command):
        """What is typed there, as root; its output."""
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        said = ""
        for line in self.process.stdout:
            if line.startswith("done "):
                if line != "done 0\n":
                    raise Failed(f"{command}: status {line[5:].strip()}: {said}{self.log()[-1500:]}")
                return said
            said += line
        raise Failed(f"the machine ended at {command}: {said}{self.log()[-1500:]}")

    def log(self):
        path = pathlib.Path(self.folder, "serve.log")
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def client(self):
        client = Client(f"http://{NAME}", self.do("echo $token").strip(), address=("127.0.0.1", self.port))
        client.place = self.below + API
        client.conversation = "c" + secrets.token_hex(6)
        return client

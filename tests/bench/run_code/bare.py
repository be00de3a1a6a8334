"""The interpreter without a container: in the image's own files (chroot), as the sandboxes' user, without limits.

A child of ours lives in there and starts the programs with posix_spawn, which costs the same however large the starter is.
"""
import contextlib
import ctypes
import json
import os
import subprocess
import time

import engine
from harness import TOP
from work import LeftOut

CLONE_NEWNS = 0x00020000


def command_of(language):
    """(script, command line) from the image's table of languages: [options] SCRIPT PROGRAM ARGUMENTS… SCRIPT, each in a line."""
    with open(f"{TOP}/runners/workbench/languages/{language}", encoding="utf-8") as file:
        words = [line for line in file.read().splitlines() if not line.startswith("#")]
    for at, word in enumerate(words):
        if word in words[at + 1:]:
            return word, words[at + 1:]
    raise LeftOut(f"the table names no script for {language}: {words}")


def _unpack(folder):
    if os.path.exists(folder):
        return
    os.mkdir(folder)
    made = engine.api("POST", "/containers/create", {"Image": engine.WORKBENCH, "Labels": {"sandbox.bench": "true"}})["Id"]
    try:
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export:
            subprocess.run(["tar", "-x", "-C", folder], stdin=export.stdout, check=True)
    finally:
        engine.remove(made)


class Bare:
    def __init__(self, language, folder):
        if os.geteuid():
            raise LeftOut("the bare interpreter is measured in a chroot: that needs root")
        config = engine.image(engine.WORKBENCH)["Config"]
        self.root = os.path.join(folder, "root")
        _unpack(self.root)
        os.chown(f"{self.root}/data", 1000, 1000)
        script, command = command_of(language)
        asked, self._ask = os.pipe()
        self._told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self._drop_others((asked, tell))
                self._move_in()
                self._serve(asked, tell, script, command, dict(entry.split("=", 1) for entry in config["Env"]))
                status = 0
            finally:
                os._exit(status)
        os.close(asked)
        os.close(tell)
        self._answers = os.fdopen(self._told)

    @staticmethod
    def _drop_others(mine):
        """A process that holds a copy of another interpreter's pipe keeps that interpreter from ending."""
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd not in mine:
                with contextlib.suppress(OSError):
                    os.close(fd)

    def _move_in(self):
        """A mount namespace of its own: /proc and /dev go with the process."""
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        for name in ("proc", "dev"):
            subprocess.run(["mount", "--rbind", f"/{name}", f"{self.root}/{name}"], check=True)
        os.chroot(self.root)
        os.chdir("/data")
        os.setgroups([])
        os.setgid(1000)
        os.setuid(1000)

    @staticmethod
    def _serve(asked, tell, script, command, environment):
        """For each program (a line of JSON) its time in ms, or its exit status below zero."""
        actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
        with os.fdopen(asked) as programs:
            for line in programs:
                with open(script, "w", encoding="utf-8") as file:
                    file.write(json.loads(line))
                start = time.perf_counter()
                pid = os.posix_spawnp(command[0], command, environment, file_actions=actions)
                status = os.waitpid(pid, 0)[1]
                took = (time.perf_counter() - start) * 1000
                os.write(tell, f"{-1 if status else took}\n".encode())

    def run(self, work):
        os.write(self._ask, json.dumps(work.code).encode() + b"\n")
        took = float(self._answers.readline() or -1)
        if took < 0:
            raise RuntimeError(f"the bare interpreter does not run {work.name}")
        return took

    def close(self):
        os.close(self._ask)
        self._answers.close()
        os.waitpid(self.pid, 0)


class Exec:
    """docker exec, by its command line, into a running container, as a server does that keeps one per session."""

    def __init__(self, client, work, data):
        os.makedirs(data)
        os.chown(data, 1000, 1000)
        body = client.body(work.language, data) | {"Entrypoint": ["sleep", "infinity"], "OpenStdin": False}
        self.id = client.call("POST", "/containers/create", body)["Id"]
        client.call("POST", f"/containers/{self.id}/start")
        self._docker = ["docker", "exec", self.id]
        self.script, self.command = command_of(work.language)
        self.written = None

    def run(self, work):
        if self.written != work:
            subprocess.run(["docker", "exec", "-i", self.id, "sh", "-c", f"cat >{self.script}"], input=work.code.encode(), check=True)
            self.written = work
        actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
        start = time.perf_counter()
        pid = os.posix_spawnp("docker", [*self._docker, *self.command], os.environ, file_actions=actions)
        status = os.waitpid(pid, 0)[1]
        took = (time.perf_counter() - start) * 1000
        if status:
            raise RuntimeError(f"docker exec does not run {work.name}")
        return took

    def close(self):
        engine.remove(self.id)

#!/usr/bin/env python3
"""Removes what a run of the tests left that was killed: processes, mounts, loop devices, network namespaces, containers,
accounts, folders. Prints a line about it; nothing if nothing was found.

A process that makes a folder by make_folder() holds a lock on a file in it until it ends. A folder whose lock is free belongs to
an ended run, and so does what names the folder. Folders without that file are left alone.
"""
import fcntl
import glob
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LOCK = ".held"
PLACES = ("/tmp/sandcgi-*", "/var/tmp/sandcgi-*")
SPACE, LINK = "sandcgi-e2e-", "sgt"  # of tests/e2e/network.py: with the number of the process that made them
HOSTS = ("45.45.46.46/32", "2a0f:4546::46/128")
_held = []


def make_folder(prefix, where="/tmp"):
    """A new folder that is this process's until it ends."""
    path = tempfile.mkdtemp(prefix=prefix, dir=where)
    fd = os.open(f"{path}/{LOCK}.new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(f"{path}/{LOCK}.new", f"{path}/{LOCK}")  # from here on it is looked at
    _held.append(fd)
    return path


def _is_held(path):
    fd = os.open(f"{path}/{LOCK}", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def ended_folders():
    """Of this account's runs that are over."""
    found = []
    for path in (path for place in PLACES for path in glob.glob(place)):
        try:
            if os.lstat(path).st_uid == os.geteuid() and not _is_held(path):
                found.append(path)
        except OSError:  # there is no lock in it
            continue
    return found


def _within(name, folders):
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _names(pid, folders):
    """Does its command, its environment or its working directory name one of them, or a folder of the end-to-end tests that is gone?"""
    try:
        if _within(os.readlink(f"/proc/{pid}/cwd"), folders):
            return True
    except OSError:
        pass
    text = _read(f"/proc/{pid}/cmdline") + b"\0" + _read(f"/proc/{pid}/environ")
    return (any(os.fsencode(folder) + b"/" in text for folder in folders)
            or any(not os.path.exists(folder) for folder in re.findall(rb"/tmp/sandcgi-e2e-\w+(?=/)", text)))


def _parents():
    """{number: parent's number} of all processes but this one."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if fields:
                found[int(name)] = int(fields[1])
    return found


def _adopter():
    """Who gets processes whose parents have ended: init, or what stands in for it in this session."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        child = os.getpid()
        if os.fork() == 0:
            while os.getppid() == child:
                time.sleep(0.01)
            os.write(writing, str(os.getppid()).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, encoding="ascii") as file:
        return int(file.read())


def end_processes(folders):
    """Those that name the folders and have lost their parents, with all that they have started; not a program
    that a person reads a log there with."""
    parents, adopters = _parents(), (1, _adopter())
    ended = {pid for pid, parent in parents.items() if parent in adopters and _names(pid, folders)}
    while more := {pid for pid, parent in parents.items() if parent in ended} - ended:
        ended |= more
    for pid in ended:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    return len(ended)


def unmount(folders):
    count = 0
    for line in reversed(_read("/proc/self/mountinfo").decode().splitlines()):
        where = line.split()[4].replace("\\040", " ")
        if _within(where, folders):
            count += subprocess.run(["umount", "--lazy", where], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return count


def free_loops(folders):
    """Those of file systems in the folders that are mounted nowhere."""
    count = 0
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        if _within(_read(path).decode().strip().removesuffix(" (deleted)"), folders):
            count += subprocess.run(["losetup", "--detach", "/dev/" + path.split("/")[3]], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return count


def remove_namespaces():
    """With the links into them, and the addresses of this machine that belonged to them."""
    names = [name for name in (os.listdir("/run/netns") if os.path.isdir("/run/netns") else []) if name.startswith(SPACE)]
    ended = [name for name in names if b"python" not in _read(f"/proc/{name.removeprefix(SPACE)}/cmdline")]
    for name in ended:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["ip", "link", "del", f"{LINK}{name.removeprefix(SPACE)}a"], stderr=subprocess.DEVNULL, check=False)
    if ended and ended == names:
        for address in HOSTS:
            subprocess.run(["ip", "addr", "del", address, "dev", "lo"], stderr=subprocess.DEVNULL, check=False)
    return len(ended)


class _Engine(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("engine", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path):
        self.request(method, path)
        return self.getresponse().read()


def remove_containers(folders):
    """Of the engine that the tests are about to use: those that have something of the folders mounted."""
    path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    try:
        engine = _Engine(path)
        found = [one["Id"] for one in json.loads(engine.ask("GET", "/containers/json?all=1"))
                 if any(_within(mount.get("Source", ""), folders) for mount in one["Mounts"])]
        for one in found:
            engine.ask("DELETE", f"/containers/{one}?force=1&v=1")
        return len(found)
    except OSError:  # there is no engine
        return 0


def remove_accounts(folders):
    ended = [one.pw_name for one in pwd.getpwall() if _within(one.pw_dir, folders)]
    for name in ended:
        subprocess.run(["userdel", "--force", name], stderr=subprocess.DEVNULL, check=False)
    return len(ended)


def _mounted(folder):
    return any(_within(line.split()[4], [folder]) for line in _read("/proc/self/mountinfo").decode().splitlines())


def remove_folders(folders):
    for folder in folders:
        if not _mounted(folder):  # else what is mounted would go, too
            shutil.rmtree(folder, ignore_errors=True)
    return sum(not os.path.exists(folder) for folder in folders)


def remove():
    """Removes all of it; what was found, as a text."""
    folders = ended_folders()
    found = {}
    found["process"] = end_processes(folders)
    if folders:
        found["container"] = remove_containers(folders)
        found["mount"] = unmount(folders)
        found["loop device"] = free_loops(folders)
        found["account"] = remove_accounts(folders)
        found["folder"] = remove_folders(folders)
    found["network namespace"] = remove_namespaces()
    return ", ".join(f"{n} {what}{'' if n == 1 else 'es' if what.endswith('s') else 's'}" for what, n in found.items() if n)


if __name__ == "__main__":
    text = remove()
    if text:
        print(f"left by a run of the tests that was killed, and removed: {text}")

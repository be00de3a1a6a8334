"""A fresh clone of this tree, started the way a new user does: ./start.sh."""
import functools
import os
import shutil
import subprocess

import engine
from harness import TOP, Failed, at_end, new_folder
from mcp import Client
from sites import clean_environment, free_port


def _git(*arguments):
    return subprocess.run(["git", "-C", TOP, *arguments], check=True, capture_output=True).stdout


def _names(*arguments):
    return [os.fsdecode(name) for name in _git("ls-files", "-z", *arguments).split(b"\0") if name]


# What ./start.sh makes of the sources below a clone.
BUILT = ("aclocal.m4", "configure", "config.h.in", "Makefile.in", "build-aux", "build", "runners/common/entry", "runners/warm/warm.so",
         "runners/nss/libnss_sandbox.so.2")


def take_build(folder):
    """What ./start.sh has built in this tree, with the times of the sources, so that make builds in the clone what is out of date."""
    if not os.path.exists(f"{TOP}/.git") or not os.path.exists(f"{TOP}/build/sandcgi"):
        return
    for name in _names():
        if os.path.lexists(f"{TOP}/{name}"):
            shutil.copystat(f"{TOP}/{name}", f"{folder}/{name}", follow_symlinks=False)
    for name in BUILT:
        if os.path.isdir(f"{TOP}/{name}"):
            shutil.copytree(f"{TOP}/{name}", f"{folder}/{name}", symlinks=True)
        elif os.path.exists(f"{TOP}/{name}"):
            shutil.copy2(f"{TOP}/{name}", f"{folder}/{name}")


def make_clone(folder):
    """git clone, and on top what is changed but not committed."""
    if not os.path.exists(f"{TOP}/.git"):
        shutil.copytree(TOP, folder, symlinks=True, ignore=shutil.ignore_patterns("build*", "var", ".env", "*.o", "*.a"))
        return
    subprocess.run(["git", "clone", "-q", TOP, folder], check=True, capture_output=True)
    for name in _names("-m", "-o", "--exclude-standard"):
        if os.path.lexists(f"{TOP}/{name}"):
            os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
            shutil.copy2(f"{TOP}/{name}", f"{folder}/{name}", follow_symlinks=False)
    for name in _names("-d"):
        if os.path.lexists(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")


class Clone:
    """of: another one, whose compiled program it has; account: an ordinary one (pwd), which it belongs to and which starts it."""

    def __init__(self, of=None, account=None):
        base = new_folder("clone")
        self.home = account.pw_dir if account else base
        self.folder = f"{base}/sandcgi"
        self.state = f"{base}/state"
        self.as_account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        if of:
            shutil.copytree(of.folder, self.folder, symlinks=True)
            os.unlink(f"{self.folder}/.env")
        else:
            make_clone(self.folder)
        if account:
            subprocess.run(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", base], check=True)
        self.https_port, self.http_port = free_port(), free_port()
        self.env_file = f"{self.folder}/.env"

    def environment(self):
        return clean_environment() | {
            "SANDCGI_STATE_DIR": self.state, "NGINX_HTTPS_PORT": str(self.https_port),
            "NGINX_HTTP_PORT": str(self.http_port), "DOCKER_HOST": engine.host()}

    def start_sh(self, *arguments, timeout=1200, environment=None):
        """Runs ./start.sh; (exit status, everything it printed)."""
        done = subprocess.run(["./start.sh", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              env=self.environment() | (environment or {}), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout, check=False, **self.as_account)
        return done.returncode, done.stdout

    def start_sh_until(self, words, timeout=200, environment=None):
        """Runs ./start.sh and interrupts it once it has printed words; everything it printed."""
        with subprocess.Popen(["./start.sh"], cwd=self.folder, stdin=subprocess.DEVNULL, env=self.environment() | (environment or {}), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", **self.as_account) as process:
            said = ""
            for line in process.stdout:
                said += line
                if words in line:
                    process.terminate()
            process.wait(timeout)
        return said

    def shell(self, script, timeout=120):
        """A script pasted into bash in the clone; with this clone's ports."""
        script = script.replace("localhost:8443", f"localhost:{self.https_port}")
        script = script.replace("localhost:8080", f"localhost:{self.http_port}")
        return subprocess.run(["bash", "-c", script], cwd=self.folder, stdin=subprocess.DEVNULL,
                              env=clean_environment() | {"HOME": self.home},
                              capture_output=True, text=True, errors="replace", timeout=timeout, check=False)

    def setting(self, name):
        with open(self.env_file, encoding="utf-8") as file:
            for line in file:
                if line.startswith(name + "="):
                    return line.rstrip("\n").partition("=")[2].strip('"')
        return None

    def client(self):
        return Client(f"http://localhost:{self.http_port}", self.setting("MCP_API_TOKEN"))

    def logs(self):
        return [os.path.join(where, name) for where, _, names in os.walk(f"{self.state}/log") for name in names]

    def log_tails(self):
        text = ""
        for path in self.logs():
            with open(path, encoding="utf-8", errors="replace") as file:
                text += f"\n{path}:\n" + "".join(file.readlines()[-10:])
        return text


@functools.cache
def made():
    """The clone, not yet started."""
    clone = Clone()
    take_build(clone.folder)
    at_end(clone.start_sh, "--stop")
    return clone


@functools.cache
def first_start():
    """(status, output) of the first ./start.sh."""
    return made().start_sh()


_told = False


def started():
    """The clone with everything running."""
    global _told
    status, output = first_start()
    if status:
        story = "told above" if _told else output[-3000:] + made().log_tails()
        _told = True
        raise Failed(f"./start.sh ended with status {status}: {story}")
    return made()

"""The Debian package, built and installed in a Debian root of its own; systemd does not run there."""
import configparser
import functools
import glob
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess

import engine
import leftovers
import procs
from clone import make_clone
from harness import IS_ROOT, TOP, Failed, Skip, at_end, wait_until
from mcp import Client
from sites import DIE_WITH_US, free_port

TOOLS = ("dpkg-buildpackage", "dh", "lintian", "mmdebstrap", "systemd-analyze", "systemd-socket-activate", "unshare")
SUITE = "bookworm"
PACKAGES = "adduser,procps,nginx-light,systemd-standalone-tmpfiles"
RELEASE = "0.999.0"  # that is upgraded from
_AUTHOR = os.environ | {f"GIT_{who}_{what}": "tests@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
CONFIG = "/etc/sandcgi/sandcgi.conf"
BUILT = "debian-runner-"  # and the runner: the repository of what build_images() makes
RENAMING_CLIENT = f"""#!/bin/bash
words=()
for word; do
    [[ $word == sandcgi-runner-*:latest ]] && word={BUILT}${{word#sandcgi-runner-}}
    words+=("$word")
done
exec /usr/local/lib/docker/client "${{words[@]}}"
"""
# Not the package's, whatever it does: of dpkg, adduser, nginx.
FOREIGN = ("/etc/group-", "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/run/adduser", "/dev", "/proc", "/sys", "/tmp",
           "/var/cache", "/var/log", "/var/lib/dpkg", "/var/lib/apt", "/var/lib/systemd")


def _quietly(words, **popen):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **popen)
    if done.returncode:
        raise Failed(f"{' '.join(words)} ended with {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


def _folder():
    """Not below the suite's: its name stands in no socket's path."""
    path = leftovers.make_folder("sandcgi-deb-", "/var/tmp")
    os.chmod(path, 0o755)
    at_end(shutil.rmtree, path, True)
    return path


@functools.cache
def _begin_root():
    """(folder, process): a Debian root is made while the package is built."""
    if not IS_ROOT:
        raise Skip("needs root")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise Skip(f"not installed: {' '.join(missing)}")
    folder = _folder()
    script = 'source "$1/tests/lib/debian_root.sh"; debian_root "$2" "$3" "$4,$debian_libraries" --variant=apt'
    words = ["bash", "-c", script, "bash", TOP, SUITE, f"{folder}/root", PACKAGES]
    return folder, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@functools.cache
def package():
    """The path of the .deb of a release that this tree is cut to; the .changes lies beside it."""
    folder, _ = _begin_root()
    source = f"{folder}/build/sandcgi"
    os.mkdir(f"{folder}/build")
    make_clone(source)
    if not os.path.exists(f"{source}/.git"):
        _git(source, "init", "-q")
    with open(f"{source}/CHANGELOG.md", "r+", encoding="utf-8") as file:
        text = file.read().replace("\n## ", "\n## Unreleased\n\n- It is tested.\n\n## ", 1)
        file.seek(0)
        file.write(text)
    _git(source, "add", "-A")
    _git(source, "commit", "-q", "-m", "what is tested")
    _quietly([f"{source}/service/release/cut.sh", RELEASE], env=_AUTHOR)
    return _build(source)


@functools.cache
def newer_package():
    """The path of the .deb of the next commit."""
    source = f"{os.path.dirname(package())}/sandcgi"
    _git(source, "commit", "-q", "--allow-empty", "-m", "a change")
    return _build(source)


def _git(source, *words):
    _quietly(["git", "-C", source, *words], env=_AUTHOR)


def _build(source):
    """What has been compiled before comes from ccache, where that is installed. debhelper gives a HOME of its own."""
    before = set(glob.glob(f"{source}/../sandcgi_*.deb"))
    _quietly(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=source,
             env=os.environ | {"DEB_BUILD_OPTIONS": f"noautodbgsym parallel={os.cpu_count()}", "LC_ALL": "C.UTF-8",
                               "PATH": f"/usr/lib/ccache:{os.environ['PATH']}", "CCACHE_DIR": f"{os.path.dirname(source)}/ccache"})
    return os.path.abspath((set(glob.glob(f"{source}/../sandcgi_*.deb")) - before).pop())


class Unit(configparser.RawConfigParser):
    """A unit file; of a key that is there twice the last counts."""
    optionxform = staticmethod(str)

    def __init__(self, path):
        super().__init__(strict=False, interpolation=None, delimiters=("=",))
        self.read(path, encoding="utf-8")


class Root:
    def __init__(self):
        folder, making = _begin_root()
        package()
        output, _ = making.communicate()
        if making.returncode:
            raise Failed(f"mmdebstrap ended with {making.returncode}: {output[-2000:]!r}")
        self.folder = f"{folder}/root"
        self.port = free_port()
        self.process = self.nginx = None
        self._mount()
        self.before = self.names()

    def _mount(self):
        """In a mount namespace of its own: nothing stays mounted, whatever ends the tests."""
        script = ('set -e; mount --make-rprivate /; mount -t proc proc "$1/proc"; mkdir -p "$1/run/engine"; '
                  'mount --bind "$2" "$1/run/engine"; echo; exec sleep infinity')
        keeper = subprocess.Popen([*DIE_WITH_US, "unshare", "--mount", "sh", "-c", script, "sh", self.folder,
                                   os.path.dirname(engine.socket_path())], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        at_end(procs.end, keeper, 5)
        if not keeper.stdout.readline():
            raise Failed("the root's mounts could not be made")
        self.outside = ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt"]
        self.inside = [*self.outside, "chroot", self.folder]

    def run(self, *words, **popen):
        return _quietly([*self.inside, *words], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                                                      "DEBIAN_FRONTEND": "noninteractive"}, **popen)

    def fails(self, *words):
        """What a command says that ends with a failure."""
        try:
            said = self.run(*words)
        except Failed as problem:
            return str(problem).partition(": ")[2]
        raise Failed(f"{' '.join(words)} did not fail: {said}")

    def names(self):
        """Everything that is there, but for what is not the package's."""
        found = set()
        for where, folders, files in os.walk(self.folder):
            inside = where.removeprefix(self.folder)
            folders[:] = [name for name in folders if f"{inside}/{name}" not in (*FOREIGN, "/run/engine")]
            found.update(f"{inside}/{name}" for name in (*folders, *files))
        found.difference_update(FOREIGN)
        return found

    def install(self, deb):
        shutil.copy(deb, f"{self.folder}/tmp/sandcgi.deb")
        self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "/tmp/sandcgi.deb")
        os.unlink(f"{self.folder}/tmp/sandcgi.deb")

    def units_for_verify(self):
        """The units in a folder, with their programs where they are for this machine's systemd."""
        folder = _folder()
        for path in glob.glob(f"{self.folder}/lib/systemd/system/sandcgi*"):
            with open(path, encoding="utf-8") as source, open(f"{folder}/{os.path.basename(path)}", "w", encoding="utf-8") as target:
                target.write(re.sub(r"^(Exec\w+=)(/usr/\S+)", rf"\1{self.folder}\2", source.read(), flags=re.M))
        return sorted(glob.glob(f"{folder}/*"))

    def build_images(self, *languages):
        """With the installed builder and a client of the engine, by which images get names that the servers of other tests do not take;
        what it prints."""
        folder = f"{self.folder}/usr/local/lib/docker"
        os.makedirs(folder, exist_ok=True)
        shutil.copy(shutil.which("docker"), f"{folder}/client")
        with open(f"{folder}/docker", "w", encoding="ascii") as file:
            file.write(RENAMING_CLIENT)
        os.chmod(file.name, 0o755)
        socket = f"DOCKER_HOST=unix:///run/engine/{os.path.basename(engine.socket_path())}"
        try:
            return self.run("env", socket, "PATH=/usr/local/lib/docker:/usr/bin:/bin", "/usr/libexec/sandcgi/runners/build.sh", *languages)
        finally:
            shutil.rmtree(folder)

    def unit(self, name):
        return Unit(f"{self.folder}/lib/systemd/system/{name}")

    def setting(self, name):
        with open(self.folder + CONFIG, encoding="utf-8") as file:
            return re.search(rf"^{name}=(.*)$", file.read(), re.M).group(1)

    def configure(self):
        """What an operator writes, and the places of this machine."""
        values = {"PUBLIC_BASE_URL": f"http://localhost:{self.port}", "DOCKER_HOST": f"unix:///run/engine/{os.path.basename(engine.socket_path())}",
                  "SANDBOX_HOST_PATH": f"{self.folder}/var/lib/sandcgi/sandboxes", "SANDBOX_WARM": "", "SANDBOX_NETWORK": "none",
                  "SANDCGI_WORKERS": "6"}
        with open(self.folder + CONFIG, "a", encoding="utf-8") as file:
            file.write("".join(f"{name}={value}\n" for name, value in values.items()))

    # ---- as systemd would ----

    def _sockets(self):
        return [self.unit(name)["Socket"] for name in self.unit("sandcgi.service")["Service"]["Sockets"].split()]

    def start(self):
        """The unit's command with its capabilities and the sockets of its socket units."""
        sockets, service = self._sockets(), self.unit("sandcgi.service")["Service"]
        paths = [self.folder + one["ListenStream"] for one in sockets]
        rights = ",".join("+" + name.removeprefix("CAP_").lower() for name in service["CapabilityBoundingSet"].split())
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
        with open(f"{self.folder}/tmp/sandcgi.log", "ab") as log:
            self.process = subprocess.Popen(
                [*DIE_WITH_US, *self.outside, "systemd-socket-activate", *(word for path in paths for word in ("-l", path)),
                 "--fdname=" + ":".join(one["FileDescriptorName"] for one in sockets),
                 "chroot", self.folder, "setpriv", f"--bounding-set=-all,{rights}", "--no-new-privs", *service["ExecStart"].split()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        at_end(procs.end, self.process, 30)
        wait_until(lambda: all(map(os.path.exists, paths)), 10, "systemd-socket-activate listens")
        for path, one in zip(paths, sockets):
            os.chmod(path, int(one["SocketMode"], 8))
            shutil.chown(path, group=one["SocketGroup"])

    def program(self):
        """What the service's main process executes."""
        return os.readlink(f"/proc/{self.process.pid}/exe").replace(self.folder, "")

    def reload(self):
        self.run(*self.unit("sandcgi.service")["Service"]["ExecReload"].split())

    def stop(self, seconds=60):
        self.process.send_signal(signal.SIGTERM)
        try:
            if self.process.wait(seconds):
                raise Failed(f"the service ended with {self.process.returncode}: {self.log()[-2000:]}")
        except subprocess.TimeoutExpired as problem:
            raise Failed(f"the service does not stop: {self.log()[-2000:]}") from problem

    def log(self):
        with open(f"{self.folder}/tmp/sandcgi.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    # ---- the web server ----

    def set_up_nginx(self):
        """One that is there already, and what "sandcgi setup nginx" says to add to it."""
        os.unlink(f"{self.folder}/etc/nginx/sites-enabled/default")
        block = f"server {{ listen 127.0.0.1:{self.port}; server_name localhost; %s }}"
        site = f"{self.folder}/etc/nginx/conf.d/site.conf"
        with open(site, "w", encoding="utf-8") as file:
            file.write(block % "")
        said = self.run("sandcgi", "setup", "nginx", "--server-name", "localhost")
        lines = re.findall(r"^ +(include .*;)$", said, re.M)
        if len(lines) != 2:
            raise Failed(f"no two lines to add: {said}")
        with open(site, "w", encoding="utf-8") as file:
            file.write(lines[0] + "\n" + block % lines[1])
        self.run("nginx", "-t")

    def start_nginx(self):
        with open(f"{self.folder}/tmp/nginx.log", "ab") as log:
            self.nginx = subprocess.Popen([*DIE_WITH_US, *self.inside, "nginx", "-g", "daemon off;"], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log)
        at_end(procs.end, self.nginx, 10)

    def client(self):
        one = Client(f"http://localhost:{self.port}", self.setting("MCP_API_TOKEN"))
        one.conversation = "c" + secrets.token_hex(6)
        return one

    def mode_of(self, path):
        found = os.stat(self.folder + path)
        groups = dict(line.split(":")[0:3:2][::-1] for line in open(f"{self.folder}/etc/group", encoding="utf-8"))
        return f"{stat.S_IMODE(found.st_mode):04o} {found.st_uid} {groups[str(found.st_gid)]}"


@functools.cache
def bare():
    """Without the package, which is built."""
    return Root()


@functools.cache
def installed():
    root = bare()
    root.install(package())
    return root


@functools.cache
def running():
    root = installed()
    root.configure()
    root.set_up_nginx()
    root.start()
    root.start_nginx()
    client = root.client()

    def answers():
        try:
            return client.http("GET", "/healthz").status == 200
        except OSError:
            return False
    wait_until(answers, 20, "/healthz answers 200")
    wait_until(lambda: client.structured("list_runners", {})["languages"], 20, "the runners are found")
    return root

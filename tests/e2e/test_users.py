"""Users: each conversation's programs run as one of its own, which owns its files and which no account of the host is."""
import os
import pwd
import subprocess

import engine
import procs
import sites
import warm
from harness import IS_ROOT, Skip, check, contains, equal, new_folder, test, wait_until

# inotify instances until there are no more (128 for each user), and pipes of 1 MiB (64 for each user); then it stays.
HOARD = """
import ctypes, fcntl, os, resource, time
libc = ctypes.CDLL(None)
def inotify():
    n = 0
    while n < 900 and libc.inotify_init1(0) >= 0:
        n += 1
    return n
def pipes():
    n = 0
    try:
        for _ in range(100):
            fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
            n += 1
    except PermissionError:
        pass
    return n
"""


def _needs_root():
    if not IS_ROOT:
        raise Skip("only root can give files away")


def _create(client, language="python"):
    return client.structured("create_sandbox", {"conversationId": client.conversation, "language": language})["sandboxId"]


def _exec(client, sandbox, command):
    result = client.structured("exec", {"sandboxId": sandbox, "commands": [command]})["results"][0]
    equal(result["exitCode"], 0, result)
    return result["stdout"]


def _close(client, sandbox):
    client.structured("close_sandbox", {"sandboxId": sandbox})


def _ids(client, language="bash"):
    """The user and the group of a run, which must be one that the setting means."""
    code = {"python": "import os\nprint(os.getuid(), os.getgid())", "bash": "echo $(id -u) $(id -g)",
            "typescript": "console.log(process.getuid(), process.getgid())"}[language]
    uid, gid = map(int, client.run(code, language)["stdout"].split())
    check(sites.is_sandbox_user(uid) and (gid == uid or not IS_ROOT), f"user {uid}:{gid}")
    return uid


def _dir_of(site, client):
    """The conversation's directory on the host."""
    client.upload("where-am-i", b"")
    for folder in os.scandir(site.root):
        if os.path.exists(f"{folder.path}/where-am-i"):
            os.unlink(f"{folder.path}/where-am-i")
            return folder.path
    raise AssertionError("no directory has the file")


@test("each conversation has a user of its own, and keeps it: cold, warm, in every language, in a persistent sandbox", core=True)
def _():
    _needs_root()
    site = warm.shared()
    one, other, third = (warm.new_client(site) for _ in range(3))
    uid = _ids(one)
    equal([_ids(one, language) for language in ("python", "typescript", "bash")], [uid] * 3)
    warm.wait_next(site, one, "python")
    equal(_ids(one, "python"), uid)
    sandbox = _create(one, "bash")
    equal(_exec(one, sandbox, "id -u; id -g"), f"{uid}\n{uid}\n")
    _close(one, sandbox)
    equal(len({uid, _ids(other), _ids(third, "python")}), 3, "users of three conversations")
    info = os.stat(_dir_of(site, one))
    equal((info.st_uid, info.st_gid, info.st_mode & 0o777), (uid, uid, 0o755))


@test("the user has a name and a home: for the shell, Python and Bun, and in a persistent sandbox")
def _():
    client = sites.client()
    names = "whoami; id -un; id -gn; echo ~sandbox ~ $HOME; getent passwd $(id -u) | cut -d: -f1,6"
    want = "sandbox\nsandbox\nsandbox\n/data /data /data\nsandbox:/data\n"
    equal(client.run(names, "bash")["stdout"], want)
    result = client.run("import getpass, grp, os, pathlib, pwd\nme = pwd.getpwuid(os.getuid())\n"
                        "print(me.pw_name, me.pw_dir, pwd.getpwnam('sandbox').pw_uid == os.getuid())\n"
                        "print(getpass.getuser(), grp.getgrgid(os.getgid()).gr_name, pathlib.Path.home(), pathlib.Path('.').owner())\n"
                        "print(pwd.getpwnam('root').pw_uid)")
    equal((result["stdout"], result["stderr"]), ("sandbox /data True\nsandbox sandbox /data sandbox\n0\n", ""))
    equal(client.run("import { homedir } from 'os';\nconsole.log(homedir(), await Bun.$`whoami`.text())", "typescript")["stdout"],
          "/data sandbox\n\n")
    sandbox = _create(client, "bash")
    equal(_exec(client, sandbox, names), want)
    _close(client, sandbox)


@test("what tools write belongs to the program, which replaces and deletes it; what it writes can be downloaded")
def _():
    client = sites.client()
    _ids(client)
    client.structured("write_file", {"conversationId": client.conversation, "filename": "a/b/text", "text": "by a tool"})
    client.upload("given", b"by hand")
    result = client.run("stat -c %u:%a a a/b a/b/text given | sort -u | sed s/$(id -u)/mine/; echo more >>a/b/text\n"
                        "cat a/b/text; rm -r given; mv a/b/text kept; rm -r a; umask 077; echo own >own; chmod 644 own", "bash")
    equal(result["stdout"], "mine:644\nmine:755\nby a toolmore\n")
    files = {file["name"]: file["url"] for file in result["files"] if "url" in file}
    equal((client.download(files["kept"]).body, client.download(files["own"]).body), (b"by a toolmore\n", b"own\n"))


@test("all inotify instances and pipe pages of one user leave another conversation and the host's accounts theirs", timeout=120)
def _():
    _needs_root()
    hoarder, other = sites.client(), sites.client()
    sandbox = _create(hoarder)
    _exec(hoarder, sandbox, f"cat >hoard.py <<'END'\n{HOARD}\nprint(inotify(), pipes(), flush=True)\ntime.sleep(300)\nEND\n"
                            "python3 hoard.py >hoard.txt 2>&1 &")
    words = wait_until(lambda: _exec(hoarder, sandbox, "cat hoard.txt").split(), 30, "it has taken all")
    check(0 < int(words[0]) < 900 and 0 < int(words[1]) < 100, f"nothing ran out: {words}")
    few = "\nprint(libc.inotify_init1(0) >= 0, fcntl.fcntl(os.pipe()[1], 1031, 1 << 20))"
    equal(other.run(HOARD + few)["stdout"], "True 1048576\n", "another conversation")
    host = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "/usr/bin/python3", "-c", HOARD + few]
    equal(subprocess.run(host, capture_output=True, text=True, check=False).stdout, "True 1048576\n", "an account of the host")
    _close(hoarder, sandbox)


@test("no account of the host is a program's user: none can trace it or read what it has open")
def _():
    _needs_root()
    site, client = sites.shared(), sites.client()
    uid = _ids(client)
    sandbox = _create(client)
    _exec(client, sandbox, "sleep 300 >/dev/null 2>&1 &")
    (container,) = [one["Id"] for one in site.all_containers() if one["Labels"]["sandbox.run"] == sandbox.removeprefix("sbx_")]
    family = procs.descendants(engine.inspect(container)["State"]["Pid"])
    check(family, "no process in the container")
    equal({procs.status(pid, "Uid") for pid in family} - {None}, {"\t".join([str(uid)] * 4)})
    check(uid not in {entry.pw_uid for entry in pwd.getpwall()}, "an account has the number")
    look = f"ls /proc/{family[0]}/cwd/ /proc/{family[0]}/fd; cat /proc/{family[0]}/environ"
    for account in (1000, 65534):
        done = subprocess.run(["setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups", "sh", "-c", look],
                              capture_output=True, text=True, check=False)
        equal(done.stdout, "", f"read by {account}")
        contains(done.stderr, "ermission denied")
    _close(client, sandbox)


@test("a tree with the user of another setting is taken over at its next use: files are kept, and no link is followed")
def _():
    _needs_root()
    site = sites.own({"SANDBOX_USER": "1000:1000"})
    client = sites.new_conversation(site.client())
    outside = new_folder("outside") + "/file"
    with open(outside, "w", encoding="ascii") as file:
        file.write("the host's")
    made = client.run(f"mkdir -p d/e; echo one >d/e/f; ln d/e/f hard; ln -s {outside} soft; mkfifo fifo; chmod 600 hard; id -u", "bash")
    equal(made["stdout"], "1000\n")
    site.settings["SANDBOX_USER"] = None
    procs.end(site.process, 40)
    site.write_config()
    site.start_server()
    site.wait_healthy()
    uid = _ids(client)
    owners = client.run("find . -printf '%U:%G\\n' | sort -u; cat hard; echo two >>d/e/f; rm -r hard soft; ls d/e", "bash")
    equal(owners["stdout"], f"{uid}:{uid}\none\nf\n")
    info = os.stat(outside)
    equal((info.st_uid, info.st_gid), (os.getuid(), os.getgid()), "what the link names")


@test("a tree that a container uses keeps its owner until that has ended", timeout=120)
def _():
    _needs_root()
    site = sites.own({"SANDBOX_USER": "1000:1000"})
    client = sites.new_conversation(site.client())
    sandbox = _create(client, "bash")
    _exec(client, sandbox, "echo one >file")
    before = site.broker()
    site.settings["SANDBOX_USER"] = None
    site.reload()
    wait_until(lambda: site.broker() not in (None, before), 20, "another broker has taken over")
    equal(wait_until(lambda: client.run("id -u; echo two >>file; stat -c %u file", "bash")["stdout"], 10, "a run"), "1000\n1000\n")
    equal(_exec(client, sandbox, "cat file; echo three >>file; id -u"), "one\ntwo\n1000\n")
    _close(client, sandbox)
    uid = _ids(client)
    equal(client.run("cat file; stat -c %u file", "bash")["stdout"], f"one\ntwo\nthree\n{uid}\n")


@test("SANDBOX_USER=auto without root: the programs have the server's account, and the log says so")
def _():
    _needs_root()
    site = sites.own({"SANDCGI_USER": None, "SANDCGI_LISTEN_GROUP": None}, start=False)
    account = pwd.getpwnam("nobody")
    for folder, _folders, names in os.walk(site.folder):
        for path in (folder, *(f"{folder}/{name}" for name in names)):
            os.chown(path, account.pw_uid, account.pw_gid)
    server = site.start_server(["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"])
    wait_until(lambda: "SANDBOX_USER=auto needs root" in site.log() or server.poll() is not None, 20, "a line of the log")
    contains(site.log(), f"all programs run as {account.pw_uid}:{account.pw_gid}")


@test("what programs keep in their home is there for the next ones, and is listed when it is asked for; caches are not kept")
def _():
    client = sites.new_conversation(sites.client())
    result = client.run("git config --global user.name me; mkdir -p ~/.config ~/own ${XDG_CACHE_HOME:?}/x; touch ~/.config/one ~/own/.env", "bash")
    equal([one["name"] for one in result["files"]], ["own/.env"])
    equal(client.run("git config user.name", "bash")["stdout"], "me\n")
    result = client.run("import os, pathlib\nprint(sorted(os.listdir(pathlib.Path.home())), os.path.exists(os.environ['XDG_CACHE_HOME']))")
    equal(result["stdout"], "['.config', '.gitconfig', 'own'] False\n")

    def listed(**arguments):
        return [row["name"] for row in client.structured("list_files", {"conversationId": client.conversation, "recursive": True} | arguments)["files"]]
    equal(listed(), ["own", "own/.env"])
    equal(listed(includeHidden=True), [".config", ".config/one", ".gitconfig", "own", "own/.env"])
    equal(listed(glob=".git*"), [".gitconfig"])
    equal(listed(folder=".config"), [".config/one"])

"""SANDBOX_STORE: what was changed is in the store seconds later, and comes back where it is missing."""
import concurrent.futures
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import procs
import s3
import sites
from harness import IS_ROOT, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until

LAG = 5  # seconds, the goal


def _folder():
    folder = new_folder("store")
    os.chmod(folder, 0o700)
    return folder


def _status(site):
    done = subprocess.run([site.binary, "status", "--json", "--config", site.config], env=site.tool_environment(), capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def _is_saved(site):
    return _status(site)["store"]["waiting"] == 0


def _await_saved(site, seconds=LAG):
    wait_until(lambda: _is_saved(site), seconds, "the store has all files", 0.2)


def _lose(site):
    """The machine is gone with its disk, at once."""
    for pid in [site.process.pid, *site.processes(), *procs.children(site.broker() or 0)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    site.stop()
    shutil.rmtree(site.root)


def _another(site, **settings):
    """A new machine with the same secret and store."""
    keep = {name: site.settings[name] for name in ("FILE_SECRET", "SANDBOX_STORE") if name in site.settings}
    keep |= {name: value for name, value in site.settings.items() if name.startswith("SANDBOX_STORE_")}
    return sites.own(keep | settings)


def _client_of(site, conversation):
    client = site.client()
    client.conversation = conversation
    return client


def _objects(store):
    return sorted(f"{os.path.basename(folder)}/{name}" for folder, _, names in os.walk(store) for name in names if name != "sandcgi-store")


def _list(store):
    """The list of files of the only conversation."""
    lists = glob.glob(f"{store}/*/manifest")
    return pathlib.Path(lists[0]).read_bytes() if lists else b""


@test("machine and disk lost: what a run, an upload and file tools changed is back on a new machine, URLs too", core=True, timeout=120)
def _():
    site = sites.own({"SANDBOX_STORE": _folder()})
    client = sites.new_conversation(site.client())
    client.run("mkdir -p sub; echo one >a.txt; echo two >sub/b.txt; ln -s ../../etc/passwd link; chmod 755 a.txt; mkfifo pipe; truncate -s 1G sparse", "bash")
    url = client.upload("up.bin", bytes(range(256)))["file"]["url"]
    client.run("rm sub/b.txt; mv a.txt sub/c.txt; echo new >sub/b.txt", "bash")
    client.structured("delete_file", {"conversationId": client.conversation, "filename": "sparse"})
    _await_saved(site)
    _lose(site)

    site = _another(site)
    client = _client_of(site, client.conversation)
    equal(client.http("GET", url[url.index("/files/"):]).body, bytes(range(256)), "the file's URL")
    out = client.run("stat -c '%n %a' sub/*; cat sub/*; readlink link; ls", "bash")["stdout"]
    equal(out, "sub/b.txt 644\nsub/c.txt 755\nnew\none\n../../etc/passwd\nlink\nsub\nup.bin\n")
    equal(os.listdir(f"{site.root}/.staging"), [])


@test("a run is the first call on the new machine: its files are there before the program starts; a new conversation starts empty")
def _():
    site = sites.own({"SANDBOX_STORE": _folder(), "SANDBOX_WARM": "bash=1"})
    client = sites.new_conversation(site.client())
    client.run("echo 1 >count", "bash")
    _await_saved(site)
    _lose(site)
    site = _another(site, SANDBOX_WARM="bash=1")
    client = _client_of(site, client.conversation)
    equal(client.run("cat count; echo 2 >count", "bash")["stdout"], "1\n")
    equal(client.run("cat count", "bash")["stdout"], "2\n")
    equal(sites.new_conversation(site.client()).run("ls -A", "bash")["stdout"], "")


@test("a persistent sandbox's files are saved while it is open, and a session's after each call")
def _():
    site = sites.own({"SANDBOX_STORE": _folder()})
    client = sites.new_conversation(site.client())
    box = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]
    client.structured("exec", {"sandboxId": box, "commands": ["(sleep 2; echo late >late.txt) >/dev/null 2>&1 & echo soon >soon.txt"]})
    wait_until(lambda: b"late.txt" in _list(site.settings["SANDBOX_STORE"]), 4 * LAG, "both files are in the list, which follows them")
    _lose(site)
    site = _another(site)
    equal(_client_of(site, client.conversation).run("cat soon.txt late.txt", "bash")["stdout"], "soon\nlate\n")


@test("a deleted conversation, and an expired one, are removed from the store and do not come back")
def _():
    store = _folder()
    site = sites.own({"SANDBOX_STORE": store})
    client, other = sites.new_conversation(site.client()), sites.new_conversation(site.client())
    for one in client, other:
        one.run("echo x >x", "bash")
    _await_saved(site)
    equal(len(_objects(store)), 4)
    client.structured("delete_conversation", {"conversationId": client.conversation})
    equal(client.run("ls -A", "bash")["stdout"], "", "at once")
    wait_until(lambda: len(_objects(store)) == 3, 2 * LAG, "the file is removed; the empty conversation has a list")
    site.settings["SANDBOX_TTL"] = "2s"
    site.reload()
    wait_until(lambda: not _objects(store), 30, "both have expired")


@test("kill -9 of the saver, and of the whole server, loses nothing that was to be saved", timeout=120)
def _():
    store = _folder()
    os.chmod(store, 0o500)  # as root it can be written all the same
    site = sites.own({"SANDBOX_STORE": store})
    client = sites.new_conversation(site.client())
    for number in range(3):
        client.run(f"echo {number} >f{number}; head -c 3000000 /dev/urandom >big{number}", "bash")
        for pid in _savers(site):
            os.kill(pid, signal.SIGKILL)
    _await_saved(site, 20)
    client.run("echo last >last", "bash")
    procs.kill_family(site.process.pid)
    site.process.wait()
    site.start_server()
    site.wait_healthy()
    _await_saved(site, 20)
    _lose(site)
    client = _client_of(_another(site), client.conversation)
    equal(client.run("cat f? last; ls big* | wc -l", "bash")["stdout"], "0\n1\n2\nlast\n3\n")


def _savers(site):
    return [pid for pid in procs.children(site.broker() or 0) if any(name.endswith("/.state/saving") for name in procs.open_files(pid))]


@test("the store away: work goes on, the status tells, new conversations wait, and all is saved when it is back", timeout=120)
def _():
    store = _folder()
    site = sites.own({"SANDBOX_STORE": store})
    client = sites.new_conversation(site.client())
    client.run("echo 1 >a", "bash")
    _await_saved(site)
    os.rename(store, store + ".away")
    os.mkdir(store, 0o700)  # as a mount point on which nothing is mounted
    equal(client.run("cat a; echo 2 >b", "bash")["stdout"], "1\n")
    error = sites.new_conversation(site.client()).tool_error("run_code", {"language": "bash", "code": "true", "conversationId": "new-one"})
    contains(str(error), "try again in 5 s")
    wait_until(lambda: _status(site)["store"]["waiting"] == 1, LAG, "one conversation waits")
    equal(os.listdir(store), [], "nothing is written to another place")
    os.rmdir(store)
    os.rename(store + ".away", store)
    _await_saved(site, 60)
    equal(sites.new_conversation(site.client()).run("echo ok", "bash")["stdout"], "ok\n")
    _lose(site)
    equal(_client_of(_another(site), client.conversation).run("cat b", "bash")["stdout"], "2\n")


@test("a full store: runs go on, the status and the log tell, and all is saved when there is room", timeout=120)
def _():
    if not IS_ROOT:
        raise Skip("mounts a file system")
    store = _folder()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", store], check=True)
    at_test_end(subprocess.run, ["umount", "-l", store])
    site = sites.own({"SANDBOX_STORE": store})
    contains(_doctor(site), f"{store} is written, read and cleared")
    client = sites.new_conversation(site.client())
    client.run("echo small >small", "bash")
    _await_saved(site)
    client.run("head -c 3000000 /dev/urandom >large", "bash")
    wait_until(lambda: _status(site)["store"]["lagSeconds"] >= 3, 20, "it lags")
    equal(client.run("cat small", "bash")["stdout"], "small\n")
    equal([name for name in _objects(store) if "/.new-" in name], [], "no half files stay")
    subprocess.run(["mount", "-o", "remount,size=20m", store], check=True)
    _await_saved(site, 60)
    _lose(site)
    equal(_client_of(_another(site), client.conversation).run("wc -c <large", "bash")["stdout"], "3000000\n")


def _doctor(site):
    return subprocess.run([site.binary, "doctor", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, timeout=60, check=False).stdout


@test("two nodes, one store: each goes on from what the other has saved, and none overwrites a newer state", timeout=120)
def _():
    first = sites.own({"SANDBOX_STORE": _folder(), "SANDCGI_NODE": "n1"})
    second = _another(first, SANDCGI_NODE="n2")
    one = sites.new_conversation(first.client())
    two = _client_of(second, one.conversation)
    one.run("echo n1 >who", "bash")
    _await_saved(first)
    equal(two.run("cat who; echo n2 >who", "bash")["stdout"], "n1\n")
    _await_saved(second)
    one.run("echo late >late", "bash")  # it does not know of the other yet
    _await_saved(first)
    contains(first.log(), "has a newer state")
    equal(one.run("cat who; ls", "bash")["stdout"], "n2\nwho\n", "after that it has the other's state")
    one.run("echo n1 again >who", "bash")
    _await_saved(first)
    _lose(second)
    equal(_client_of(_another(first, SANDCGI_NODE="n2"), one.conversation).run("cat who", "bash")["stdout"], "n1 again\n")


@test("100 conversations are saved by one process, and come back", timeout=180)
def _():
    site = sites.own({"SANDBOX_STORE": _folder()})
    names = [f"many-{number}" for number in range(100)]

    def put(name):
        _client_of(site, name).upload("f.txt", name.encode())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put, names))
        begin = time.monotonic()
        wait_until(lambda: _is_saved(site), 60, "all are saved")
        check(len(_savers(site)) == 1, f"savers: {_savers(site)}")
        print(f"    100 conversations were saved {time.monotonic() - begin:.1f} s after the last upload")
        _lose(site)
        site = _another(site)
        texts = list(pool.map(lambda name: _client_of(site, name).structured("read_file", {"conversationId": name, "filename": "f.txt"})["content"], names))
    equal(texts, names)


@test("a bucket of S3: machine and disk lost, files are back; deleted files are removed there", timeout=120)
def _():
    server = s3.S3().start()
    site = sites.own(server.settings())
    client = sites.new_conversation(site.client())
    client.run("mkdir sub; echo one >a.txt; echo two >sub/b.txt; : >empty; truncate -s 1M sparse; echo end >>sparse; head -c 20000000 /dev/urandom >big; md5sum big", "bash")
    sum_of_big = client.run("md5sum big", "bash")["stdout"]
    url = client.upload("up.bin", bytes(range(256)))["file"]["url"]
    client.run("rm a.txt", "bash")
    _await_saved(site, 20)
    _lose(site)
    site = _another(site)
    client = _client_of(site, client.conversation)
    equal(client.http("GET", url[url.index("/files/"):]).body, bytes(range(256)))
    equal(client.run("md5sum big; cat sub/b.txt; stat -c '%n %s' empty sparse; tail -1 sparse | tr -d '\\0'; ls", "bash")["stdout"],
          sum_of_big + "two\nempty 0\nsparse 1048580\nend\nbig\nempty\nsparse\nsub\nup.bin\n")
    client.structured("delete_conversation", {"conversationId": client.conversation})
    wait_until(lambda: not [name for name in _objects(server.folder) if site.root and "_S3rver_object" in name and "sandcgi-store" not in name], 20,
               "nothing of it is in the bucket", 0.5)
    equal({fault for fault in server.faults if fault}, set(), "what is wrong with signatures")


@test("S3 with wrong credentials, one that is away and comes back, one that accepts and never answers: the log says why, nothing is lost", timeout=180)
def _():
    server = s3.S3().start()
    for key, fault in (("UNKNOWN:WRONG", "an unknown key"), (s3.KEY.split(":")[0] + ":WRONG", "a wrong signature")):
        server.faults.clear()
        wrong = sites.own(server.settings(key=key))
        error = sites.new_conversation(wrong.client()).tool_error("run_code", {"language": "bash", "code": "true", "conversationId": "any"})
        contains(str(error), "does not answer; try again in 5 s")
        contains(wrong.log(), "SANDBOX_STORE_CREDENTIALS")
        check("WRONG" not in wrong.log(), "the secret is in no log")
        equal(set(server.faults), {fault})

    site = sites.own(server.settings())
    client = sites.new_conversation(site.client())
    client.run("echo 1 >a", "bash")
    _await_saved(site, 20)
    server.stop()
    client.run("echo 2 >a", "bash")
    wait_until(lambda: _status(site)["store"]["lagSeconds"] >= 2, 20, "it lags")
    with socket.create_server(("127.0.0.1", server.port)) as silent:
        begin = time.monotonic()
        equal(client.run("cat a", "bash")["stdout"], "2\n", "a run does not wait for it")
        check(time.monotonic() - begin < 20, "a run does not wait for it")
        silent.settimeout(60)
        silent.accept()[0].close()
    server.start()
    _await_saved(site, 60)
    _lose(site)
    equal(_client_of(_another(site), client.conversation).run("cat a", "bash")["stdout"], "2\n")


@test("SANDBOX_STORE in a wrong form, or without credentials, stops the start with one line that names it")
def _():
    for settings, words in (({"SANDBOX_STORE": "store"}, "SANDBOX_STORE must be"), ({"SANDBOX_STORE": "s3://bucket"}, "SANDBOX_STORE_CREDENTIALS"),
                            ({"SANDBOX_STORE": "s3://b"}, "SANDBOX_STORE must be")):
        site = sites.own(settings, start=False)
        done = subprocess.run([site.binary, "check", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode != 0, done.stdout)
        contains(done.stdout + done.stderr, words)

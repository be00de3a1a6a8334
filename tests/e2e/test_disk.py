"""A program that takes too much of the disk: it is ended, what is too much goes, older files stay, others go on."""
import os
import shutil
import subprocess

import sites
from harness import at_test_end, check, contains, equal, test, wait_until

MIB = 1 << 20
OLD = bytes(range(256)) * 4096  # 1 MiB

RESERVES = {"SANDBOX_DISK_RESERVE": "64m", "SANDBOX_FILES_RESERVE": "4000"}

# As much as there is, in no time: the blocks are not even written. Then {end}.
FILL = """
import os, sys, time
try:
    for n in range(64):
        fd = os.open(f'fill{{n}}', os.O_CREAT | os.O_WRONLY)
        os.posix_fallocate(fd, 0, {mib} << 20)
        {each}
except OSError as error:
    print(error.strerror)
sys.stdout.flush()
{end}
"""


def fill(mib=200, each="pass", end="pass"):
    return FILL.format(mib=mib, each=each, end=end)


def _own(**settings):
    return sites.on_small_disk(400, 24000, RESERVES | settings)


def _of_disk():
    """A server whose reserves are reached before a quota is."""
    return sites.on_small_disk_with(400, 24000, **RESERVES, SANDBOX_QUOTA="2g")


def _of_conversation():
    """One whose quotas are."""
    return sites.on_small_disk_with(400, 24000, **RESERVES, SANDBOX_QUOTA="32m", SANDBOX_FILES="1000")


def _owner(site):
    """A client whose conversation has an older file."""
    client = sites.new_conversation(site.client(), "disk")
    client.upload("old.bin", OLD)
    return client


def _has_old_file(client):
    done = client.run("import hashlib; print(hashlib.sha256(open('old.bin', 'rb').read()).hexdigest(), len(open('old.bin', 'rb').read()))")
    contains(done["stdout"], str(len(OLD)))
    equal(client.run("sha256sum <old.bin | cut -c -8", "bash")["stdout"], subprocess.run(
        ["sha256sum"], input=OLD, capture_output=True, check=True).stdout[:8].decode() + "\n")


def _free(site):
    room = os.statvfs(site.root)
    return room.f_bavail * room.f_frsize


def _others_work(site):
    """Another conversation runs, writes and uploads."""
    client = sites.new_conversation(site.client(), "other")

    def works():
        done = client.tool("run_code", {"conversationId": client.conversation, "language": "bash",
                                        "code": "head -c 100000 /dev/zero >mine; echo done"})
        return done["structuredContent"].get("stdout") == "done\n" if "structuredContent" in done else None
    wait_until(works, 20, "another conversation runs programs again")
    client.upload("f", b"x" * 1000)
    check("notices" not in client.run("echo x >g", "bash"), "another conversation is told nothing")


@test("one program fills the disk at once: disk_limit, what it made is gone, its older files and all others are well", core=True)
def _():
    site = _of_disk()
    client = _owner(site)
    whole = client.run_whole(fill())
    result = whole["structuredContent"]
    equal((result["status"], result["success"]), ("disk_limit", False))
    contains(result["notices"][0], "SANDBOX_DISK_RESERVE")
    contains(result["notices"][0], "removed")
    contains(str(whole["content"]), "SANDBOX_DISK_RESERVE")
    check(_free(site) > 64 * MIB, f"{_free(site)} bytes are free")
    _others_work(site)
    _has_old_file(client)


@test("a program that goes on after it filled the disk is ended, long before its time", timeout=90)
def _():
    site = _of_disk()
    client = _owner(site)
    result = client.run(fill(end="time.sleep(50)"), timeout=60)
    equal(result["status"], "disk_limit")
    check(result["durationMs"] < 40000, result["durationMs"])
    _others_work(site)
    _has_old_file(client)


@test("a program that passes SANDBOX_QUOTA is ended; the next run has room, and changed older files are still there", timeout=90, core=True)
def _():
    site = _of_conversation()
    client = _owner(site)
    result = client.run("import os; os.chmod('old.bin', 0o600)\n" + fill(20, end="time.sleep(50)"), timeout=60)
    equal(result["status"], "disk_limit")
    check(result["durationMs"] < 40000, result["durationMs"])
    contains(result["notices"][0], "SANDBOX_QUOTA")
    contains(result["notices"][0], "32.0 MiB")
    _has_old_file(client)
    equal(client.run("head -c 5M /dev/zero >more; echo done", "bash")["stdout"], "done\n")


@test("a flood of small files ends as bytes do, at SANDBOX_FILES and at SANDBOX_FILES_RESERVE", timeout=120)
def _():
    flood = ("import os\nos.mkdir('d')\ntry:\n    for n in range(50000): open(f'd/{n}', 'w').close()\n"
             "except OSError as error: print(error.strerror)")
    for site, name in ((_of_conversation(), "SANDBOX_FILES)"), (_of_disk(), "SANDBOX_FILES_RESERVE")):
        client = _owner(site)
        result = client.run(flood, timeout=60)
        equal(result["status"], "disk_limit")
        contains(result["notices"][0], name)
        _others_work(site)
        _has_old_file(client)


@test("a command of a persistent sandbox that takes too much is ended, and the sandbox goes on", timeout=90)
def _():
    site = _of_conversation()
    client = _owner(site)
    sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]
    result = client.structured("exec", {"sandboxId": sandbox, "command": "fallocate -l 100M big; echo made; sleep 50", "timeoutMs": 60000})
    row = result["results"][-1]
    equal((row["status"], result["success"]), ("disk_limit", False))
    check(row["stdout"] in ("made\n", ""), row["stdout"])  # a look may come in between
    contains(str(result["notices"]), "SANDBOX_QUOTA")
    result = client.structured("exec", {"sandboxId": sandbox, "command": "fallocate -l 100M big; ls"})  # over before a look
    equal(result["results"][-1]["status"], "disk_limit")
    result = client.structured("exec", {"sandboxId": sandbox, "command": "echo *"})
    equal(result["results"][-1]["stdout"], "old.bin\n")
    _has_old_file(client)


# In the background, without any call: {what} takes 100 MiB.
HOLD = """nohup python3 -c '
import mmap, os, time
fd = os.open("/data/held", os.O_CREAT | os.O_RDWR)
os.posix_fallocate(fd, 0, 100 << 20)
{what}
time.sleep(600)' >/dev/null 2>&1 &"""


@test("deleted files that a sandbox's background process keeps open or mapped count: the sandbox is closed, the room is free", timeout=120)
def _():
    site = _of_conversation()
    for what in ("os.unlink('/data/held')".replace("'", '"'), 'room = mmap.mmap(fd, 0); os.unlink("/data/held"); os.close(fd)', ""):
        client = _owner(site)
        before = _free(site)
        sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "python"})["sandboxId"]
        client.tool("exec", {"sandboxId": sandbox, "command": HOLD.format(what=what)})

        def is_closed(client=client, sandbox=sandbox):
            row = client.structured("get_sandbox_status", {"sandboxId": sandbox})["sandboxes"][0]
            return row["status"] == "closed" and row
        row = wait_until(is_closed, 40, "the sandbox is closed", pause=0.2)
        contains(row["reason"], "SANDBOX_QUOTA")
        contains(row["reason"], "deleted files" if what else "MiB")
        wait_until(lambda before=before: _free(site) > before - 10 * MIB, 20, "the room is free again")
        contains(site.log(), "SANDBOX_QUOTA")
        _has_old_file(client)
    _others_work(site)


# Deleted files whose descriptors are on their way in a socket, which no count finds: more than the disk has above its reserve.
IN_FLIGHT = """import os, socket, time
mine, other = socket.socketpair()
for n in range(40):
    fd = os.open("/data/held", os.O_CREAT | os.O_RDWR)
    os.unlink("/data/held")
    try: os.posix_fallocate(fd, 0, 10 << 20)
    except OSError: break
    socket.send_fds(mine, [b"x"], [fd])
    os.close(fd)
time.sleep(600)
"""


@test("where the reserve is broken by files in descriptors on their way, which nobody can count, their program is ended", timeout=120)
def _():
    site = _of_disk()
    client = _owner(site)
    before = _free(site)
    result = client.run(IN_FLIGHT, timeout=100)
    equal(result["status"], "disk_limit")
    contains(result["notices"][0], "SANDBOX_DISK_RESERVE")
    wait_until(lambda: _free(site) > before - 10 * MIB, 20, "the room is free again")
    _others_work(site)
    _has_old_file(client)


@test("where the reserve is touched, every way in is refused and makes no directory", core=True)
def _():
    site = sites.own({"SANDBOX_DISK_RESERVE": "1000000g"})
    client = sites.new_conversation(site.client(), "disk")
    of_it = {"conversationId": client.conversation}
    run = of_it | {"language": "python", "code": "1"}
    for tool, arguments in (
            ("run_code", run), ("run_code", run | {"session": True}), ("run_code", run | {"background": True}),
            ("create_sandbox", of_it | {"language": "bash"}),
            ("install_package", of_it | {"language": "python", "packages": ["x"]}),
            ("upload_file", of_it | {"filename": "f", "content": ""}), ("write_file", of_it | {"filename": "f", "text": ""}),
            ("create_upload", of_it | {"filename": "f"}), ("import_url", of_it | {"url": "https://example.org/f"}),
            ("upload_archive", of_it | {"content": "UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="})):
        contains(client.tool_error(tool, arguments), "SANDBOX_DISK_RESERVE", f"{tool} {arguments}")
    site.settings |= {"SANDBOX_DISK_RESERVE": None, "SANDBOX_FILES_RESERVE": "1000000000"}
    site.reload()
    wait_until(lambda: "SANDBOX_FILES_RESERVE" in client.tool_error("create_sandbox", of_it | {"language": "bash"}), 20, "the other reserve")
    contains(client.tool_error("create_upload", of_it | {"filename": "f"}), "SANDBOX_FILES_RESERVE")
    equal([name for name in os.listdir(site.root) if not name.startswith(".")], [])


@test("a disk without room for the server's own files: a line says so, and the server goes on when there is room", timeout=90)
def _():
    site = _own()
    site.stop()
    shutil.rmtree(f"{site.root}/.helpers")
    left = os.statvfs(site.root)
    with open(f"{site.root}/.fill", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - 65536)
    site.start(until_healthy=False)
    wait_until(lambda: "error broker: SANDBOX_ROOT: no room for .helpers/" in site.log(), 20, "a line")
    contains(site.log(), "remove files, or enlarge the file system, and the server goes on")
    os.remove(f"{site.root}/.fill")
    site.wait_healthy()
    equal(sites.new_conversation(site.client()).run("echo on", "bash")["stdout"], "on\n")


@test("a file system that has become read-only: calls say so, the log and doctor, too, and nothing is restarted when it is writable again")
def _():
    site = _of_disk()
    client = _owner(site)

    def remount(way):
        return subprocess.run(["mount", "-o", f"remount,bind,{way}", site.root], capture_output=True, check=False).returncode == 0
    at_test_end(remount, "rw")
    wait_until(lambda: remount("ro"), 20, "nobody writes there")
    for tool, arguments in (("write_file", {"filename": "f", "text": ""}), ("create_upload", {"filename": "f"})):
        contains(client.tool_error(tool, {"conversationId": client.conversation} | arguments), "the server's disk is read-only", tool)
    contains(client.run_error("true", "bash"), "the server's disk is read-only")
    equal(client.http("GET", "/readyz").status, 503)
    wait_until(lambda: "SANDBOX_ROOT: runs and uploads are refused: the server's disk is read-only; mount it writable" in site.log(), 15, "a line")
    done = subprocess.run([site.binary, "doctor", "--quiet", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=False)
    contains(done.stdout, "the file system of SANDBOX_ROOT is read-only (to mend it: mount it writable)")
    contains(done.stdout, "(Read-only file system); mount it writable, or set another path")
    equal(client.structured("list_files", {"conversationId": client.conversation})["files"][0]["name"], "old.bin")
    check(remount("rw"), "writable again")
    client.upload("new.bin", b"x")
    equal(client.run("cat new.bin", "bash")["stdout"], "x")

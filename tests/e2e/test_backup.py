"""sandcgi backup, restore and purge, beside a running server."""
import contextlib
import io
import os
import secrets
import subprocess
import tarfile

import runs
import sites
from harness import check, contains, equal, new_folder, test, wait_until


def _command(site, *arguments, status=0, **run):
    done = subprocess.run([site.binary, *arguments, "--config", site.config], env=site.tool_environment(), capture_output=True, timeout=60, check=False, **run)
    equal(done.returncode, status, done.stderr.decode()[-1000:])
    return done.stdout, done.stderr.decode()


def _of_tenant(site, tenant, conversation):
    client = site.client().with_token(secrets.token_hex(24))
    site.set_token(tenant, client.token)
    client.conversation = conversation
    return client


@test("a backup of a running server is restored into others, with the same FILE_SECRET and with another; purge leaves other tenants alone", timeout=120)
def _():
    site = sites.own()
    mine, other = sites.new_conversation(site.client()), _of_tenant(site, "alice", "one")
    url = mine.upload("a.txt", b"mine")["file"]["url"]
    mine.upload("sub/b.bin", bytes(range(256)))
    equal(mine.run("chmod 755 a.txt; ln -s /etc/passwd link; mkfifo fifo; touch -d @1700000000 sub/b.bin", "bash")["status"], "ok")
    other.upload("a.txt", b"hers")
    folder = new_folder("backup")
    os.chmod(folder, 0o755)
    for name in ("all.tar", "all.tar.gz", "all.tar.zst"):
        _out, said = _command(site, "backup", f"{folder}/{name}")
        contains(said, "backed up: 2 conversations, 3 files")
        contains(said, "note: 2 links, special files")
        equal(os.stat(f"{folder}/{name}").st_mode & 0o777, 0o600)
    check("FILE_SECRET" not in said and mine.conversation not in said, said)
    contains(_command(site, "backup", f"{folder}/all.tar", status=1)[1], "File exists")
    contains(_command(site, "backup", f"{folder}/all.zip", status=1)[1], "must end in .tar")
    piped = _command(site, "backup", "-", "--tenant", "alice")[0]
    equal(sum(name.endswith("record.json") for name in tarfile.open(fileobj=io.BytesIO(piped)).getnames()), 1)

    contains(_command(site, "restore", f"{folder}/all.tar", status=1)[1], "is there already")
    same, another = sites.own({"FILE_SECRET": site.settings["FILE_SECRET"]}), sites.own()
    for target, name in (same, "all.tar.gz"), (another, "all.tar.zst"):
        contains(_command(target, "restore", f"{folder}/{name}")[1], "restored: 2 conversations, 3 files")
        client = target.client()
        client.conversation = mine.conversation
        equal(client.run("stat -c '%a %Y' a.txt sub/b.bin | cut -d' ' -f1,2; [ -e link ] || echo none; echo more >>a.txt", "bash")["stdout"].split()[::3], ["755", "1700000000"])
        rows = {row["name"]: row for row in client.structured("list_files", {"conversationId": client.conversation, "recursive": True})["files"]}
        equal(client.download(rows["sub/b.bin"]["url"]).body, bytes(range(256)))
        equal(client.download(rows["a.txt"]["url"]).body, b"minemore\n")
        equal(os.listdir(f"{target.root}/.staging"), [])
    path = url[url.index("/files/"):]
    equal((same.client().http("GET", path).status, another.client().http("GET", path).status), (200, 404), "the URL of before")

    contains(_command(site, "restore", f"{folder}/all.tar", "--skip-existing")[1], "restored: 0 conversations, 0 files, 0.0 MiB\nsandcgi: note: 2 conversations are there")
    contains(_command(site, "restore", f"{folder}/all.tar", "--skip-existing", "--replace", status=1)[1], "exclude each other")
    contains(_command(site, "restore", f"{folder}/all.tar", "--conversation", "nowhere", status=1)[1], "the backup has no conversation nowhere")
    equal(_command(another, "purge", "--tenant", "alice", "--yes")[0].decode().splitlines()[0], "removed alice one")
    contains(_command(another, "restore", f"{folder}/all.tar", "--tenant", "alice", "--conversation", "one")[1], "restored: 1 conversations, 1 files")
    equal(_command(site, "restore", f"{folder}/all.tar", "--replace", "--tenant", "default")[1].splitlines()[0][:26], "restored: 1 conversations,")
    equal(mine.download(url).body, b"mine")
    contains(_command(site, "purge", status=1)[1], "say what to remove")
    contains(_command(site, "purge", "--tenant", "default", status=1, stdin=subprocess.DEVNULL)[1], "confirm by --yes")
    equal(_command(site, "purge", "--tenant", "default", "--dry-run")[0].decode(), f"default {mine.conversation}\n")
    equal(_command(site, "purge", "--older-than", "1h", "--yes")[0].decode(), "there is nothing to remove\n")
    with contextlib.closing(mine.begin_cancellable("sleep 60", "bash")):
        wait_until(site.run_children, 10, "the program runs")
        contains(_command(site, "purge", "--tenant", "default", "--yes", status=1)[1], "is still running")
    client = _of_tenant(site, "bob", "two")
    client.upload("a.txt", b"his")
    out = _command(site, "purge", "--tenant", "bob", "--conversation", "two", "--yes")[0].decode()
    equal(out, "removed bob two\n1 of 1 conversations were removed\n")
    equal(other.run("cat a.txt", "bash")["stdout"], "hers")
    site.stop()
    equal(_command(site, "purge", "--tenant", "alice", "--yes")[0].decode().splitlines()[0], "removed alice one")  # without a server
    equal(os.listdir(f"{site.root}/.trash"), [])


@test("a restore that fails while it replaces conversations brings all of them back, with the results of their runs")
def _():
    site = sites.own()
    clients = [sites.new_conversation(site.client()) for _ in range(2)]
    for client in clients:
        client.upload("a.txt", b"in the backup")
    backup = _command(site, "backup", "-")[0]
    for client in clients:
        client.upload("a.txt", b"later")
    kept = [(client, runs.begin(client, "cat a.txt")) for client in clients]
    for client, run in kept:
        wait_until(lambda client=client, run=run: runs.look(client, run)["status"] == "ok", 20, "the run has ended")
    with subprocess.Popen([site.binary, "restore", "-", "--replace", "--config", site.config],
                          env=site.tool_environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as restore:
        restore.stdin.write(backup[:-512])  # all but the end
        restore.stdin.flush()
        wait_until(lambda: len(os.listdir(f"{site.root}/.staging")) == 2, 20, "both conversations are staged")
        last = max(clients, key=lambda client: backup.index(client.conversation.encode()))
        with contextlib.closing(last.begin_cancellable("sleep 60", "bash")):
            wait_until(site.run_children, 10, "the program runs")
            said = restore.communicate(backup[-512:], timeout=60)[1].decode()
    equal(restore.returncode, 1, said)
    contains(said, "nothing was restored, and all conversations are as before: ")
    contains(said, f"conversation {last.conversation} of ")
    for client, run in kept:
        equal(runs.look(client, run)["stdout"], "later")
        equal(client.run("cat a.txt", "bash")["stdout"], "later")
    contains(_command(site, "restore", "-", "--replace", input=backup)[1], "restored: 2 conversations")
    for client, run in kept:
        contains(client.tool_error("get_run", {"runId": run}), "no such run")
        equal(client.run("cat a.txt", "bash")["stdout"], "in the backup")


@test("backup, restore and purge are for root or the server's account")
def _():
    site = sites.own(start=False)
    if os.geteuid() != 0:
        return
    os.chmod(site.config, 0o644)
    for command in ("backup", "-"), ("purge", "--tenant", "x", "--yes"):
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", site.binary, *command, "--config", site.config],
                              env=site.tool_environment(), capture_output=True, text=True, check=False, cwd="/")
        equal(done.returncode, 1)
        contains(done.stderr, "this needs root, or the server's account")

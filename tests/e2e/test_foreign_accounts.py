"""What other accounts of the machine find of the conversations: names in /proc, but no file (H-06)."""
import grp
import json
import os
import re
import subprocess
import sys

import pool
import sites
import warm
from harness import IS_ROOT, Skip, check, equal, test

# Runs as another account: the names in mounts of any process, and every file below them that it can read.
WALKER = r"""
import glob, json, os, re, sys
root = sys.argv[1]
tail = "/".join(root.split("/")[-3:])  # a mount's path may begin at its file system
names, places, readable = set(), [root, *sys.argv[2:]], []
for process in glob.glob("/proc/[0-9]*"):
    try:
        found = re.findall(re.escape(tail) + r"/([0-9a-f/.pol]{24,64})[ /]", open(f"{process}/mountinfo").read())
    except OSError:
        continue
    if found:
        names |= set(found)
        places += [f"{process}/root/data", f"{process}/cwd"]
for place in places + [f"{root}/{name}" for name in names]:
    for folder, _, files in os.walk(place):
        for name in files:
            try:
                open(f"{folder}/{name}", "rb").close()
                readable.append(f"{folder}/{name}")
            except OSError:
                pass
print(json.dumps({"names": sorted(names), "readable": readable}))
"""
OWN_FOLDERS = (".pool", ".runs", ".sandboxes", ".staging", ".state", ".tickets", ".trash", ".uploads", ".sessions", ".indexes")


def _as_account(uid, gid, *command):
    return subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(gid), "--clear-groups", "--no-new-privs", *command],
                          capture_output=True, check=False)


def _walk(site, uid, gid):
    done = _as_account(uid, gid, sys.executable, "-I", "-c", WALKER, site.root, *(f"{site.root}/{name}" for name in OWN_FOLDERS))
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def _used_site():
    """A server with warm containers on a SANDBOX_ROOT that was open to every account, and a client that has left files of every kind."""
    site = warm.site(start=False)
    os.chmod(site.root, 0o711)
    site.start()
    client = sites.new_conversation(site.client())
    url = client.upload("secret.txt", b"private")["file"]["url"]
    client.run("mkdir -p deep; echo more >deep/file; echo shown", "bash", background=True)
    client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})
    client.structured("create_upload", {"conversationId": client.conversation, "filename": "later"})
    pool.wait_for(site, language="bash", sandbox=re.search(r"[0-9a-f]{64}", url).group())
    return site, client, url


@test("H-06: other accounts find names of conversations in /proc, and can read none of their files; nginx's group still serves them", timeout=120)
def _():
    if not IS_ROOT:
        raise Skip("needs root")
    site, client, url = _used_site()
    equal(site.log().count("was open to every account"), 1)
    web = grp.getgrnam(sites.web_account()).gr_gid
    name = re.search(r"[0-9a-f]{64}", url).group()
    found = _walk(site, 0, 0)
    check(f"{site.root}/{name}/secret.txt" in found["readable"], "the walker finds what root finds")
    foreign = [uid for uid in (65534, 999, 33, 12345, 64999) if uid != web][:4]
    for uid in foreign:
        found = _walk(site, uid, uid)
        check(name in found["names"], f"{uid}: the conversation's name is not in /proc: the test tests nothing")
        equal(found["readable"], [], uid)
    equal(client.download(url).body, b"private")
    equal(_as_account(12345, web, "cat", f"{site.root}/{name}/secret.txt").stdout, b"private", "the web server's group")
    check(_as_account(12345, web, "ls", site.root).returncode != 0, "the web server's group lists SANDBOX_ROOT")


@test("workers in the web server's group, which reads all files, are told of at the start")
def _():
    if not IS_ROOT:
        raise Skip("needs root")
    site = sites.own({"SANDCGI_USER": sites.web_account()})
    equal(site.log().count("is in the web server's group"), 1)


@test("H-06: the name in a mount is no URL: neither a file nor an archive can be had without the token that the URL holds", core=True)
def _():
    client, other = sites.client(), sites.client()
    url = client.upload("secret.txt", b"private")["file"]["url"]
    name, token = url.split("/")[-3:-1]
    theirs = other.upload("theirs.txt", b"theirs")["file"]["url"].split("/")[-2]
    archive = client.structured("download_archive", {"conversationId": client.conversation})["url"]
    for path in (name, f"{name}/{theirs}", f"{name}/{'A' * 22}", f"{name}/{token[:-1]}", f"{name}/{token}x", f"{name}/{token.swapcase()}"):
        equal(client.download(f"{sites.shared().base_url}/files/{path}/secret.txt").status, 404, path)
    for path in (name, f"{name}/{theirs}"):
        equal(client.download(archive.replace(f"{name}/{token}", path)).status, 403, path)
    equal(client.download(url).body, b"private")
    equal(client.download(archive).status, 200)

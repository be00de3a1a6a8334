#!/usr/bin/env python3
"""A user of the container sandbox: sandbox_initialize, sandbox_exec and the rest; every result is one text."""
import os
import re
import tempfile

import client

NAMES = {"sandbox_initialize", "write_file_sandbox", "sandbox_exec", "sandbox_stop"}
LOCAL = {"copy_project", "copy_file", "copy_file_from_sandbox"}  # of a server on the user's own machine


def begin(c, **arguments):
    text = c.text("sandbox_initialize", **arguments)
    found = re.fullmatch("container_id: ([0-9a-f]{64})", text)
    c.check(found, text)
    return found.group(1)


def commands(c, container):
    """Two commands, a failure that is the last, a bare string."""
    text = c.text("sandbox_exec", container_id=container, commands=["echo one", "echo two >&2"])
    c.equal(text, "$ echo one\none\n\n$ echo two >&2\nError: two\n")
    text = c.text("sandbox_exec", container_id=container, commands=["pwd", "exit 3", "echo never"])
    c.equal(text, "$ pwd\n/app\n\n$ exit 3\nCommand exited with code 3\n")
    c.equal(c.text("sandbox_exec", container_id=container, commands="echo 'a b' | wc -w"), "$ echo 'a b' | wc -w\n2\n")
    many = [f"echo {i}" for i in range(45)]
    c.equal(c.text("sandbox_exec", container_id=container, commands=many), "\n".join(f"$ echo {i}\n{i}\n" for i in range(45)))


def project(c, container):
    """A program of several files, which stay, as does what runs in the background."""
    c.contains(c.text("write_file_sandbox", container_id=container, file_name="main.py",
                      file_contents="from lib.sums import total\nprint(total([1, 2, 3]))\n"), "Successfully wrote file main.py")
    c.contains(c.text("write_file", container_id=container, file_name="sums.py", dest_dir="lib",
                      file_contents="def total(numbers):\n    return sum(numbers)\n"), "Successfully")
    c.text("write_file_sandbox", container_id=container, file_name="__init__.py", dest_dir="/app/lib", file_contents="")
    c.text("write_file_sandbox", container_id=container, file_name="requirements.txt", file_contents="numpy\npandas>=1\n")
    told = c.text("sandbox_exec", container_id=container, commands=["pip install -r requirements.txt", "python main.py"])
    c.contains(told, "Requirement already satisfied: numpy")
    c.check(told.endswith("\n$ python main.py\n6\n"), told)
    c.text("sandbox_exec", container_id=container, commands=["echo kept >/tmp/note; sleep 600 >/dev/null 2>&1 & echo $! >/tmp/pid"])
    c.contains(c.text("sandbox_exec", container_id=container, commands=["cat /tmp/note && kill -0 $(cat /tmp/pid) && echo alive"]),
               "kept\nalive\n")
    c.contains(c.text("write_file_sandbox", container_id=container, file_name="x", dest_dir="/etc", file_contents="x"), "Error: ")
    c.contains(c.text("write_file_sandbox", container_id=container, file_name="../../x", file_contents="x"), "Error: ")


def node(c):
    """What stands in for node's image knows its commands, too."""
    container = begin(c, image="node:22-slim")
    c.text("write_file_sandbox", container_id=container, file_name="main.js",
           file_contents="const { basename } = require('node:path');\nconsole.log(basename('/a/b'), process.argv[2]);\n")
    c.text("write_file_sandbox", container_id=container, file_name="package.json", file_contents='{"scripts": {"start": "node main.js x"}}')
    c.equal(c.text("sandbox_exec", container_id=container, commands=["node main.js one"]), "$ node main.js one\nb one\n")
    told = c.text("sandbox_exec", container_id=container, commands=["node --version", "npm --version", "npx --version", "npm start"])
    c.check(re.fullmatch(r"\$ node --version\nv\d+\.[\d.]+\n\n\$ npm --version\n[\d.]+\n\n\$ npx --version\n[\d.]+\n\n"
                         r"\$ npm start\nb x\n(Error: .*\n)?", told), told)
    c.contains(c.text("sandbox_stop", container_id=container), container)


def content_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def copies(c, container):
    """Between the user's machine and the container, in a folder that the server may use."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/project/src")
        for name in ("project/run.sh", "project/src/a.txt"):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(f"{name}\n")
        c.contains(c.text("copy_project", container_id=container, local_src_dir=f"{folder}/project"), "Successfully copied")
        c.contains(c.text("copy_project", container_id=container, local_src_dir=f"{folder}/project", dest_dir="/app/other"), "Successfully")
        c.contains(c.text("copy_file", container_id=container, local_src_file=f"{folder}/project/run.sh", dest_path="one/run.sh"), "Successfully")
        c.contains(c.text("sandbox_exec", container_id=container, commands=["cat project/src/a.txt other/run.sh one/run.sh"]),
                   "project/src/a.txt\nproject/run.sh\nproject/run.sh\n")
        c.contains(c.text("copy_file_from_sandbox", container_id=container, container_src_path="/app/one/run.sh",
                          local_dest_path=f"{folder}/back.sh"), "Successfully")
        c.equal(content_of(f"{folder}/back.sh"), "project/run.sh\n")
        relative(c, container, os.path.relpath(folder))
    c.contains(c.text("copy_file", container_id=container, local_src_file="/etc/passwd"), "Error: ")
    c.contains(c.text("copy_file", container_id=container, local_src_file="./../../../../../../../etc/passwd"), "Error: ")


def relative(c, container, folder):
    """Paths that begin where the server was started, and places at the container's top."""
    for n, top in enumerate(("/app", "/app/", ".", "")):
        c.text("sandbox_exec", container_id=container, commands=["rm -rf run.sh"])
        c.contains(c.text("copy_project", container_id=container, local_src_dir=f"./{folder}/./project/", dest_dir=top), "Successfully")
        c.equal(c.text("sandbox_exec", container_id=container, commands=["cat run.sh"]), "$ cat run.sh\nproject/run.sh\n")
        c.contains(c.text("copy_file", container_id=container, local_src_file=f"./{folder}/project/../project/run.sh", dest_path=f"{n}.sh"),
                   "Successfully")
    c.contains(c.text("copy_file_from_sandbox", container_id=container, container_src_path="3.sh", local_dest_path=f"./{folder}/out.txt"),
               f"{folder}/out.txt")
    c.equal(content_of(f"{folder}/out.txt"), "project/run.sh\n")
    here = f"{os.getcwd()}/one.txt"
    c.text("sandbox_exec", container_id=container, commands=["mkdir -p deep && echo one >deep/one.txt"])
    c.contains(c.text("copy_file_from_sandbox", container_id=container, container_src_path="deep/one.txt"), f" to {here}")
    c.equal(content_of(here), "one\n")


def logs(c, container):
    templates = c.request("resources/templates/list")["result"]["resourceTemplates"]
    c.equal([one["uriTemplate"] for one in templates], ["containers://{id}/logs"])
    c.equal((templates[0]["mimeType"], templates[0]["annotations"]), ("text/plain", {"audience": ["assistant", "user"], "priority": 0.5}))
    uri = f"containers://{container}/logs"
    contents = c.request("resources/read", {"uri": uri})["result"]["contents"]
    c.equal((contents[0]["uri"], contents[0]["mimeType"]), (uri, "text/plain"))
    c.contains(contents[0]["text"], "one\n")
    for other in ("0" * 64, container[:-1] + ("0" if container[-1] != "0" else "1"), "x"):
        c.check("error" in c.request("resources/read", {"uri": f"containers://{other}/logs"}), other)


def strangers(c):
    """Only what sandbox_initialize gave is a container."""
    for container in ("0" * 64, "nginx", "", "../..", "a" * 63):
        for tool, more in (("sandbox_exec", {"commands": ["id"]}), ("sandbox_stop", {}),
                           ("write_file_sandbox", {"file_name": "x", "file_contents": "x"})):
            c.contains(c.text(tool, container_id=container, **more), "Error: ")
    c.contains(c.text("sandbox_initialize", image="evil/image:latest"), "Error: ")


def script(c):
    c.initialize("2025-03-26")
    names = {tool["name"] for tool in c.tools()}
    c.equal(names, NAMES if c.over_http else NAMES | LOCAL)
    container = begin(c)
    other = begin(c, image="python:3.12-slim-bookworm")
    c.check(container != other, "the same container twice")
    commands(c, container)
    project(c, container)
    c.equal(c.text("sandbox_exec", container_id=other, commands=["ls -A /app"]), "$ ls -A /app\n")
    logs(c, container)
    node(c)
    if not c.over_http:
        copies(c, container)
    strangers(c)
    for one in (container, other):
        c.contains(c.text("sandbox_stop", container_id=one), one)
        c.contains(c.text("sandbox_exec", container_id=one, commands=["id"]), "Error: ")


client.main(script)

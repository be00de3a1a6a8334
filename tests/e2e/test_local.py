"""copy_project, copy_file and copy_file_from_sandbox: the user's own files, over stdio only, beneath allowed directories."""
import os

import sites
from harness import check, contains, equal, new_folder, test
from stdio import Stdio

TOOLS = ("copy_project", "copy_file", "copy_file_from_sandbox")


def _project():
    """(an allowed folder with a project in it, a file outside)"""
    folder = new_folder("local")
    os.makedirs(f"{folder}/app/src/deep")
    for name, content in (("src/main.py", "print('hello')\n"), ("src/deep/\u00fc b.txt", "two"), ("README", "one")):
        with open(f"{folder}/app/{name}", "w", encoding="utf-8") as file:
            file.write(content)
    secret = f"{new_folder('outside')}/secret"
    with open(secret, "w", encoding="ascii") as file:
        file.write("secret")
    os.symlink(secret, f"{folder}/app/link")
    os.symlink(os.path.dirname(secret), f"{folder}/app/up")
    return folder, secret


def _call(client, name, arguments):
    return client.result("tools/call", {"name": name, "arguments": arguments})


def _refused(client, name, arguments):
    result = _call(client, name, arguments)
    check(result.get("isError"), f"not refused: {result}")
    return result["content"][0]["text"]


def _run(client, conversation, code):
    return _call(client, "run_code", {"conversationId": conversation, "language": "bash", "code": code})["structuredContent"]["stdout"]


@test("stdio: a project goes in, a file comes out, beneath SANDCGI_LOCAL_DIRS only and over no link", timeout=120, core=True)
def _():
    folder, secret = _project()
    site = sites.own({"SANDCGI_LOCAL_DIRS": folder}, start=False)
    client = Stdio(site.config)
    client.initialize()
    equal([tool["name"] for tool in client.result("tools/list")["tools"] if tool["name"] in TOOLS], list(TOOLS))
    who = {"conversationId": "local"}
    done = _call(client, "copy_project", who | {"local_src_dir": f"{folder}/app"})["structuredContent"]
    equal((done["files"], sorted(done["names"])), (3, ["app/README", "app/src/deep/\u00fc b.txt", "app/src/main.py"]))
    equal(_run(client, "local", "cat app/README app/src/deep/*; find . -type l"), "onetwo")
    contains(_refused(client, "copy_project", who | {"local_src_dir": f"{folder}/app/"}), "already")
    _call(client, "copy_project", who | {"local_src_dir": f"{folder}/app/", "dest_dir": "app", "overwrite": True})
    equal(_call(client, "copy_file", who | {"local_src_file": f"{folder}/app/README", "dest_path": "d/x"})["structuredContent"]["size"], 3)
    out = _call(client, "copy_file_from_sandbox", who | {"container_src_path": "d/x"})["structuredContent"]
    equal(out["path"], f"{folder}/x")
    with open(f"{folder}/x", encoding="ascii") as file:
        equal(file.read(), "one")
    contains(_refused(client, "copy_file_from_sandbox", who | {"container_src_path": "d/x"}), "already")
    for path in (secret, f"{folder}/app/link", f"{folder}/app/up/secret", f"{folder}/../outside1/secret", "/etc/passwd", "app/README"):
        check(_refused(client, "copy_file", who | {"local_src_file": path}), "no reason")
    for path in (f"{folder}/app/up/new", f"{os.path.dirname(secret)}/new", "/tmp/new-local", f"{folder}/absent/new"):
        check(_refused(client, "copy_file_from_sandbox", who | {"container_src_path": "d/x", "local_dest_path": path}), "no reason")
    equal(os.listdir(os.path.dirname(secret)), ["secret"])
    check(_refused(client, "copy_project", who | {"local_src_dir": "/etc"}), "no reason")
    check(_refused(client, "copy_project", who | {"local_src_dir": f"{folder}/app/up"}), "no reason")
    _run(client, "local", "ln -s /etc/passwd planted")
    contains(_refused(client, "copy_file_from_sandbox", who | {"container_src_path": "planted"}), "no such file")


@test("stdio: the client's roots are asked for and may be used; without them nothing may", timeout=120)
def _():
    folder, secret = _project()
    call = {"name": "copy_file", "arguments": {"conversationId": "roots", "local_src_file": f"{folder}/app/README"}}
    client = Stdio(sites.shared().config)
    client.initialize(capabilities={"roots": {}})
    for path, allowed in ((f"{folder}/app/README", True), (secret, False)):
        call["arguments"] |= {"local_src_file": path, "overwrite": True}
        id_ = client.call("tools/call", call)
        question = client.next()
        equal(question["method"], "roots/list")
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": f"file://{folder}", "name": "it"},
                                                                                   {"uri": "https://x.test/"}]}})
        equal(client.answer(id_)["result"].get("isError", False), not allowed, path)
    bare = Stdio(sites.shared().config)
    bare.initialize()
    contains(_refused(bare, "copy_file", call["arguments"]), "SANDCGI_LOCAL_DIRS")


@test("over HTTP the tools for local files are neither listed nor there (H-35)")
def _():
    client = sites.with_settings(SANDCGI_LOCAL_DIRS="/etc").client()
    names = [tool["name"] for tool in client.result("tools/list")["tools"]]
    check(not set(TOOLS) & set(names), f"listed: {names}")
    for name in TOOLS:
        answer = client.request("tools/call", {"name": name, "arguments": {"conversationId": "c", "local_src_file": "/etc/passwd"}})
        check("error" in answer.json(), f"{name} answers {answer.body}")

"""A reload between two versions of the server's messages: sandcgi is replaced by a program that is the same but for WIRE_VERSION."""
import os
import shutil

import runs
import sites
from harness import Skip, check, contains, equal, test, wait_until
from mcp import ToolError, end_run
from stdio import Stdio

OTHER = os.path.join(os.path.dirname(sites.BINARY), "tests/e2e/sandcgi-other-version")
LASTS = "sleep 4; echo done"


def _site():
    """On a program of its own, which can be replaced."""
    if not os.path.exists(OTHER):
        raise Skip("no program of another version (make tests/e2e/sandcgi-other-version)")
    folder = sites.new_folder("program")
    os.chmod(folder, 0o755)
    return sites.own(binary=shutil.copy(sites.BINARY, f"{folder}/sandcgi"))


def _upgrade(site):
    shutil.copy(OTHER, site.binary + ".new")
    os.rename(site.binary + ".new", site.binary)
    before = site.log().count("listening on")
    site.reload()
    wait_until(lambda: site.log().count("listening on") > before, 15, "the new program serves")


def _patient(call):
    """The call's result, once it is not refused as busy any more: workers of the version before may take it."""
    def answered():
        try:
            result = call()
        except ToolError as refusal:
            contains(refusal.text, "restarted")
            return None
        return result if result["status"] != "busy" else None
    return wait_until(answered, 30, "a call is taken")


@test("a reload to another version of the messages: runs end well and are found, sandboxes end when nothing runs in them, nothing hangs", timeout=120)
def _():
    site = _site()
    client = sites.new_conversation(site.client())
    other = sites.new_conversation(site.client())
    equal(client.run("x = 41", session=True)["status"], "ok")
    sandbox = client.structured("create_sandbox", {"conversationId": client.conversation, "language": "bash"})["sandboxId"]
    in_sandbox = client.structured("exec", {"sandboxId": sandbox, "command": LASTS, "background": True})["runId"]
    in_background = runs.begin(client, LASTS)
    connection = other.begin_run(LASTS, "bash")
    wait_until(lambda: len(site.containers()) == 4, 15, "their containers")
    run = {"name": "run_code", "arguments": {"conversationId": "c", "language": "bash", "code": "echo beside"}}
    beside = Stdio(site.config, binary=site.binary)
    beside.initialize()
    equal(beside.result("tools/call", run)["structuredContent"]["stdout"], "beside\n")
    _upgrade(site)

    equal(_patient(lambda: client.run("echo new", "bash"))["stdout"], "new\n")
    answer = beside.result("tools/call", run)
    check(answer["isError"] and "sandcgi stdio of that version must be started again" in answer["content"][0]["text"], answer)
    again = Stdio(site.config, binary=site.binary)
    again.initialize()
    equal(again.result("tools/call", run)["structuredContent"]["stdout"], "beside\n")
    result, status = end_run(connection, 20)
    equal((status, result["status"], result["stdout"]), (200, "ok", "done\n"))
    for run_id in in_background, in_sandbox:
        result = wait_until(lambda run_id=run_id: (r := runs.look(client, run_id, waitMs=5000))["status"] != "running" and r, 20, "its end")
        equal((result["status"], result["stdout"]), ("ok", "done\n"))
    def state():
        return client.structured("get_sandbox_status", {"sandboxId": sandbox})["sandboxes"][0]["status"]
    wait_until(lambda: state() == "closed", 20, "the sandbox ends")
    cell = _patient(lambda: client.run("print('x' in globals())", session=True))
    equal((cell["stdout"], cell["sessionStarted"], cell["stateLost"]), ("False\n", True, True))

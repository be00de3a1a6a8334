"""environment: what may be set, and what would change how the runtime starts (H-21)."""
import os

import procs
import sites
from harness import check, contains, equal, test

DENIED = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "HOME", "IFS", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "BUN_OPTIONS",
          "BUN_INSTALL", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "SHELLOPTS", "BASH_FUNC_x", "GCONV_PATH",
          "GLIBC_TUNABLES", "MALLOC_PERTURB_", "LOCPATH", "PS4")


@test("variables that would change how the runtime starts are refused by name, with the reason (H-21)", core=True)
def _():
    client = sites.client()
    for name in DENIED:
        text = client.run_error("print('never')", environment={"FINE": "x", name: "x"})
        contains(text, name)
        check(len(text) > len(name) + 20, f"no reason: {text}")


@test("names that are none, NUL in a value and sizes over the limit are refused, naming the variable")
def _():
    client = sites.client()
    for name in ("A=B", "", "A B", "1A", "A-B", "\u00e9", "A\nB", "x" * 129):
        contains(client.run_error("print('never')", environment={name: "x"}), "environment", repr(name)[:20])
    answer = client.request("tools/call", {"name": "run_code", "arguments": {"environment": {"A\0": "x"}}})
    equal(answer.status, 400, "a NUL in a key")
    contains(client.run_error("print('never')", environment={"NULL": "a\0b"}), "NULL")
    contains(client.run_error("print('never')", environment={"BIG": "x" * 70000}), "environment")
    contains(client.run_error("print('never')", environment={f"V{n}": "x" for n in range(65)}), "environment")
    contains(client.run_error("print('never')", environment={"BIG": "x" * 10_000_000}), "environment")


@test("sixty-four ordinary variables arrive; nothing of the server's own environment does", core=True)
def _():
    client = sites.client()
    values = {f"VAR_{n}": f"value {n}" for n in range(64)}
    result = client.run("import json, os\nprint('\\n'.join(sorted(os.environ)))", environment=values)
    names = set(result["stdout"].split("\n"))
    check(set(values) <= names, "some are missing")
    for name in ("DOCKER_HOST", "SANDBOX_ROOT", "FILE_SECRET", "MCP_API_TOKEN", "SANDCGI_SECRET"):
        check(name not in names, f"{name} is in the program's environment")


@test("what a caller sets never reaches the environment of our processes (H-21)")
def _():
    site = sites.shared()
    site_client = sites.client()
    site_client.run("print(1)", environment={"E2E_CANARY_NAME": "x"})
    for pid in [site.process.pid] + procs.descendants(site.process.pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                check(b"E2E_CANARY_NAME" not in file.read(), f"in process {pid}")
        except (FileNotFoundError, ProcessLookupError):
            pass
        except PermissionError:
            equal(os.geteuid() == 0, False, "root may read it")


@test("httpoxy: a Proxy header changes nothing (H-66)")
def _():
    client = sites.client()
    arguments = {"conversationId": client.conversation, "language": "bash", "code": "env | grep -ic proxy"}
    result = client.tool("run_code", arguments, {"Proxy": "http://127.0.0.1:9", "MCP-Protocol-Version": "2025-11-25"})
    equal(result["structuredContent"]["stdout"], "0\n")

"""Sets of tools of other servers: their recorded clients run unchanged, over HTTP and over standard input and output."""
import json
import os
import subprocess
import sys

import sites
from harness import TOP, check, contains, equal, new_folder, test, wait_until
from mcp import RUN_HEADERS
from stdio import Stdio
from streams import Stream

SETS = ("runner", "session", "container", "interpreter")


def _site():
    """One server, which has them without a setting."""
    return sites.with_settings()


def _play(name, *how, cwd=None, **more):
    done = subprocess.run([sys.executable, f"{TOP}/tests/profiles/{name}.py", *how], capture_output=True, text=True,
                          check=False, env=sites.clean_environment() | sites.SANITIZER_ENV | more, cwd=cwd, timeout=280)
    check(done.returncode == 0, f"{name} {how[0]}: {done.stderr[-1500:]}")
    contains(done.stdout, "checks")


def _over_http(name):
    site = _site()
    _play(name, "http", f"{site.base_url}/mcp/{name}", site.token)


def _over_stdio(name):
    folder = new_folder("local")
    _play(name, "stdio", sites.BINARY, "stdio", "--config", _site().config, "--tools", name, cwd=folder, TMPDIR=folder, SANDCGI_LOCAL_DIRS=folder)


def _register(name):
    test(f"the recorded client of \"{name}\" runs unchanged over HTTP", timeout=300)(lambda: _over_http(name))
    test(f"the recorded client of \"{name}\" runs unchanged over stdio", timeout=300)(lambda: _over_stdio(name))


for _name in SETS:
    _register(_name)


def _names(client, path, headers=None):
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers, path).json()
    return [tool["name"] for tool in answer["result"]["tools"]]


@test("every place offers its own set of tools, and no header of a client chooses another", core=True)
def _():
    client = _site().client()
    ours = _names(client, "/mcp")
    check("get_run" in ours, ours)
    runner = ["upload_file", "run_code", "list_runners"]
    for headers in ({}, {"SANDCGI_TOOLS": "core"}, {"SANDCGI-TOOLS": "core"}, {"Mcp-Param-Tools": "core"}):
        equal(_names(client, "/mcp/runner", headers), runner)
        equal(_names(client, "/mcp", {name: "runner" for name in headers}), ours)
    equal(client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, None, "/mcp/nothing").status, 404)
    equal(client.with_token("wrong").post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, None, "/mcp/runner").status, 401)


@test("the setting TOOLS chooses what /mcp itself offers; a place of an unknown set is 404 and says so")
def _():
    site = sites.with_settings(TOOLS="runner", nginx={"PROFILES": "files nonsense"})
    equal(_names(site.client(), "/mcp"), ["upload_file", "run_code", "list_runners"])
    check("get_run" in _names(site.client(), "/mcp/files"), "ours are not there")
    refused = site.client().post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, None, "/mcp/nonsense")
    equal(refused.status, 404)
    contains(refused.body.decode(), "set of tools")


@test("a session of one place is unknown at the others")
def _():
    client = _site().client()
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    session = client.post(begin, None, "/mcp/runner").headers["Mcp-Session-Id"]
    headers = RUN_HEADERS | {"Mcp-Session-Id": session}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    equal(client.post(ping, headers, "/mcp").status, 404)
    equal(client.post(ping, headers, "/mcp/runner").status, 200)
    stream = Stream(client, None, headers, path="/mcp").begin()
    equal(stream.status, 404)
    stream = Stream(client, None, headers, path="/mcp/runner").begin()
    equal(stream.status, 200)


@test("the first server's stream is at /mcp/events, without a session, which its clients have not")
def _():
    client = _site().client()
    stream = Stream(client, None, {"Accept": "text/event-stream"}, path="/mcp/events").begin()
    equal((stream.status, stream.is_stream()), (200, True))
    stream.close()
    equal(Stream(client.with_token("wrong"), None, {"Accept": "text/event-stream"}, path="/mcp/events").begin().status, 401)


@test("another server's .env is taken; its log says for what, and a misspelt name is refused with the nearest")
def _():
    theirs = {"MCP_HTTP_ADDR": ":8080", "TUNNEL_TOKEN": "t", "SANDBOX_DATA_DIR": "./data", "SANDBOX_IMAGE": "llm-sandbox:latest",
              "SANDBOX_MEMORY_LIMIT": "512m", "SANDBOX_CPU_LIMIT": "1.0", "SANDBOX_EXEC_TIMEOUT_S": "60", "SANDBOX_SESSION_TTL_M": "20",
              "SANDBOX_MAX_SESSIONS": "10", "SANDBOX_CLEANUP_INTERVAL_M": "5", "SANDBOX_MAX_UPLOAD_BYTES": "52428800",
              "SANDBOX_MAX_ARTIFACT_READ_BYTES": "10485760", "SANDBOX_MAX_OUTPUT_BYTES": "102400", "SANDBOX_MAX_CODE_BYTES": "102400",
              "SANDBOX_HTTP_HOST": "127.0.0.1", "SANDBOX_HTTP_PORT": "8080", "SANDBOX_LOG_LEVEL": "WARNING", "SANDBOX_LOG_FORMAT": "console"}
    ours = {"SANDBOX_MEMORY": "512m", "SANDBOX_CPUS": "1", "SANDBOX_TIMEOUT": "1m", "SANDBOX_PERSISTENT_MAX": "10",
            "SANDBOX_UPLOAD_MAX": "50m", "SANDCGI_LOG_LEVEL": "warn"}
    config = f"{new_folder('theirs')}/.env"

    def settings(command, **more):
        with open(config, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in ({"FILE_SECRET": "0123456789abcdef" * 4, "MCP_API_TOKEN": "fedcba9876543210" * 4,
                            "SANDBOX_ROOT": f"{os.path.dirname(config)}/root", "PUBLIC_BASE_URL": "http://localhost:8080"} | theirs | more).items())
        return subprocess.run([sites.BINARY, *command, "--config", config], capture_output=True, text=True, check=False,
                              env=sites.clean_environment() | sites.SANITIZER_ENV, timeout=60)
    values = dict(line.split("=", 1) for line in settings(["settings", "--values"]).stdout.splitlines())
    equal({name: values[name] for name in ours}, ours)
    said = settings(["check", "--values"], SANDBOX_TIMEOUT="7s")
    for name in theirs:
        contains(said.stderr, name)
    contains(said.stderr, "SANDBOX_EXEC_TIMEOUT_S is not taken: SANDBOX_TIMEOUT")
    contains(said.stdout, "SANDBOX_TIMEOUT=7s")
    contains(settings(["settings", "--values"], SANDBOX_MEMROY="1g").stderr, "there is no setting SANDBOX_MEMROY; there is SANDBOX_MEMORY")


def _container_user(settings):
    """A function that calls a tool of the set and returns its text, and a container."""
    client = Stdio(sites.own({"TOOLS": "container"} | settings, start=False).config)
    client.initialize()

    def text(tool, **arguments):
        return client.result("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]
    return text, text("sandbox_initialize").split()[-1]


@test("a file that leaves a container without a place to go to goes where the server may write, and its client hears where")
def _():
    folder = new_folder("local")
    text, container = _container_user({"SANDCGI_LOCAL_DIRS": folder})
    text("sandbox_exec", container_id=container, commands=["echo hi >a.txt"])
    contains(text("copy_file_from_sandbox", container_id=container, container_src_path="a.txt"), f" to {folder}/a.txt")


@test("what very many commands of a container printed is told when one of them is ended, and those behind it do not begin")
def _():
    text, container = _container_user({"SANDBOX_QUOTA": "1m"})
    fill = "head -c 3000000 /dev/zero >full"
    told = text("sandbox_exec", container_id=container, commands=["echo one"] * 19 + [fill, "echo never"])
    contains(told, "\n".join(["$ echo one\none\n"] * 19 + [f"$ {fill}\nError: the command was ended (disk_limit)"]))
    check("echo never" not in told, told)


@test("a create_run_close that its client leaves, or cancels, leaves nothing behind")
def _():
    site = sites.with_settings(TOOLS="interpreter")

    def conversations():
        return [name for name in os.listdir(site.root) if len(name) == 64]
    code = {"code": "open('here', 'w').close()\nimport time; time.sleep(600)"}
    left = site.client().connect()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_run_close", "arguments": code}}
    left.request("POST", "/mcp", json.dumps(message), site.client().headers(RUN_HEADERS))
    client = site.client()
    client.place = "/mcp"
    for connection in (left, None):
        connection = connection or client.begin_call("create_run_close", code)
        wait_until(lambda: any(os.path.exists(f"{site.root}/{name}/here") for name in conversations()), 30, "its program runs")
        connection.close()
        wait_until(lambda: not conversations(), 30, "its conversation is gone")


@test("sandcgi stdio --tools with an unknown name says which there are")
def _():
    done = subprocess.run([sites.BINARY, "stdio", "--config", _site().config, "--tools", "nonsense"], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, env=_site().tool_environment(), timeout=30)
    equal(done.returncode, 1)
    contains(done.stderr, "--tools must be one of: core, files, transfer, sandboxes, admin, all")

"""install_package: packages of an index get into a conversation, and nothing gets out but what the index is asked."""
import functools
import json
import os
import socket
import stat
import subprocess

import engine
import package_index
import procs
import runs
import sites
import warm
from harness import check, contains, equal, new_folder, test, wait_until
from mcp import timed

IMPORT = "import sys; sys.dont_write_bytecode = True; "
# The image's own pandas, under another version.
PANDAS = """__path__ = ["/usr/lib/python3/dist-packages/pandas"]
with open(__path__[0] + "/__init__.py") as own:
    exec(compile(own.read(), own.name, "exec"))
__version__ = "99.0"
"""
CURIOUS = """import os, socket
way = socket.socket(socket.AF_UNIX)
try:
    way.connect("/run/index/proxy")
    answer = "open"
except OSError as problem:
    answer = problem.strerror
raise ImportError(f"the way to the index: {answer}")
"""


def npm_setting(name):
    done = subprocess.run(["npm", "config", "get", name], capture_output=True, text=True, check=True, cwd="/tmp")
    value = done.stdout.strip()
    return "" if value == "null" else value


@functools.cache
def trust():
    """A file with the certificate of our own index, and with those that this machine's npm trusts."""
    path = f"{new_folder('trust')}/ca.pem"
    parts = [sites.certificate()[0], npm_setting("cafile") or os.environ.get("NODE_EXTRA_CA_CERTS", "")]
    with open(path, "wb") as out:
        for part in filter(None, parts):
            with open(part, "rb") as file:
                out.write(file.read() + b"\n")
    return path


@functools.cache
def index():
    """Ours, with what the tests install."""
    made = package_index.Index()
    made.add("tidy", "1.0", {"tidy/__init__.py": "word = 'one'\n", "tidy/old.py": ""})
    made.add("tidy", "2.0", {"tidy/__init__.py": "word = 'two'\n"}, ["numpy>=1.0", "helper"])
    made.add("helper", "0.1", {"helper.py": "word = 'helped'\n"})
    made.add("shared_a", "1.0", {"shared/a.py": "word = 'a'\n"})
    made.add("shared_b", "1.0", {"shared/b.py": "word = 'b'\n"})
    made.add("pandas", "99.0", {"pandas/__init__.py": PANDAS})
    made.add("pandas", "98.0", {"pandas/__init__.py": "import os; os.kill(os.getpid(), 11)\n"})
    made.add("pandas", "97.0", {"pandas/__init__.py": CURIOUS})
    made.add("numpy", "99.0", {"numpy/__init__.py": "__version__ = '99.0'\n"})
    made.add("needs_numpy", "1.0", {"needs_numpy.py": ""}, ["numpy>=99"])
    made.add("opencv_python_headless", "4.0", {"cv2.py": "word = 'seen'\n"})
    made.add("python_dotenv", "1.0", {"dotenv.py": "word = 'set'\n"})
    made.add("climber", "1.0", {"climber/__init__.py": "", "../../../../data/climbed": "out", "/data/rooted": "out"})
    made.add_file("source", "source-1.0.tar.gz", b"no archive, and it is not opened")
    return made


def settings(**more):
    registry = npm_setting("registry").rstrip("/")
    return {"SANDBOX_INDEXES": f"python={index().url},typescript={registry}", "SANDBOX_CA": trust(),
            "SANDBOX_INDEX_PRIVATE": "true"} | more


def shared():
    return sites.with_settings(**settings(SANDBOX_WARM="python=1,typescript=1"))


def bounded():
    """One that answers before an installation has ended, and takes few files."""
    return sites.with_settings(**settings(SANDBOX_WAIT="1ms", SANDBOX_FILES="20"))


def new_client(site=None):
    return sites.new_conversation((site or shared()).client())


def install(client, language, *packages, **arguments):
    """The whole result."""
    return client.tool("install_package", {"conversationId": client.conversation, "language": language,
                                           "packages": list(packages)} | timed(arguments))


def installed(client, language, *packages, **arguments):
    """{name: version} of what was installed."""
    result = install(client, language, *packages, **{"waitMs": 300000} | arguments)
    check(not result.get("isError"), f"refused: {result}")
    equal(result["structuredContent"]["files"], [], "files of the run")
    return {one["name"]: one["version"] for one in result["structuredContent"]["installed"]}


def sentences(result):
    return " ".join(one.get("text", "") for one in result["content"])


def failed(client, language, *packages, **arguments):
    """(sentences, structured) of an installation that must fail."""
    result = install(client, language, *packages, **{"waitMs": 300000} | arguments)
    check(result.get("isError"), f"not refused: {result}")
    return sentences(result), result.get("structuredContent", {})


def left_over(site):
    """What installations left behind on the server."""
    folder = f"{site.root}/.index"
    return os.listdir(folder) if os.path.isdir(folder) else []


@test("a Python package is installed, with what it needs and the image does not have, and later runs import it", core=True, timeout=180)
def _():
    client = new_client()
    equal(installed(client, "python", "tidy>=2"), {"tidy": "2.0", "helper": "0.1"})
    result = client.run("import tidy, helper, numpy; print(tidy.word, helper.word, numpy.__file__)")
    equal(result["stdout"], "two helped /usr/lib/python3/dist-packages/numpy/__init__.py\n")
    equal(result["files"], [])
    equal(new_client().run("import tidy")["status"], "error")
    contains(sentences(install(client, "python", "tidy")), "there already")
    wait_until(lambda: not left_over(shared()), 10, "the way to the index is gone")


@test("another version takes the place of the one before, and packages may share a folder", timeout=180)
def _():
    client = new_client()
    equal(installed(client, "python", "tidy==1.0", "shared-a"), {"tidy": "1.0", "shared_a": "1.0"})
    equal(installed(client, "python", "tidy==2.0", "shared-b"), {"tidy": "2.0", "helper": "0.1", "shared_b": "1.0"})
    result = client.run("import importlib.metadata as m, tidy, shared.a, shared.b; print(tidy.word, shared.a.word + shared.b.word, "
                        "m.version('tidy'))\nimport tidy.old")
    equal(result["stdout"], "two ab 2.0\n")
    contains(result["stderr"], "No module named 'tidy.old'")
    result = client.run("find /data/.packages -maxdepth 1 | sort; ls -d /data/.packages/python/*.dist-info", "bash")
    equal(result["stdout"].split(), ["/data/.packages", "/data/.packages/.lock", "/data/.packages/python", *(
        f"/data/.packages/python/{name}.dist-info" for name in ("helper-0.1", "shared_a-1.0", "shared_b-1.0", "tidy-2.0"))])


@test("an installed version of one of the image's libraries counts, also in a preloaded interpreter", timeout=240)
def _():
    site = shared()
    client = new_client(site)
    client.run("pass")
    installed(client, "python", "pandas==99.0")
    code = "import pandas; print(pandas.__version__)"
    for _ in range(2):
        equal(client.run(code)["stdout"], "99.0\n")
        warm.wait_next(site, client, "python")
    equal(client.run("import json, email; print(json.__file__[:15])")["stdout"], "/usr/lib/python\n")


@test("a package of npm is installed and imported, also in a Bun that was warm before", timeout=240)
def _():
    site = shared()
    client = new_client(site)
    client.run("console.log(1)", "typescript")
    warm.wait_next(site, client, "typescript")
    got = installed(client, "typescript", "is-odd@3.0.1")
    equal(got["is-odd"], "3.0.1")
    check("is-number" in got, f"what it needs is missing: {got}")
    code = 'import isOdd from "is-odd"; import isNumber from "is-number"; console.log(isOdd(3), isNumber(4))'
    for _ in range(3):
        result = client.run(code, "typescript")
        equal((result["stdout"], result["files"]), ("true true\n", []))
        warm.wait_next(site, client, "typescript")
    equal(client.run('console.log(require("pg").Client.name, require("is-odd")(2))', "typescript")["stdout"], "Client false\n")
    equal(set(installed(client, "typescript", "is-even@1.0.0")) >= {"is-even"}, True)
    equal(client.run(code, "typescript")["status"], "ok")


@test("a session that is there already imports what is installed meanwhile, also what it could not import before", timeout=240)
def _():
    client = new_client()
    missing, found = "No module named 'tidy'", "import tidy, shared.a; print(tidy.word, shared.a.word)"
    contains(client.run("kept = 1\nimport tidy", session=True)["stderr"], missing)
    installed(client, "python", "tidy==1.0")
    equal(client.run("import tidy; print(tidy.word, kept)", session=True)["stdout"], "one 1\n")
    installed(client, "python", "shared-a")
    equal(client.run(found, session=True)["stdout"], "one a\n")
    odd = 'import isOdd from "is-odd"; console.log(isOdd(3))'
    equal(client.run(odd, "typescript", session=True)["status"], "error")
    installed(client, "typescript", "is-odd@3.0.1")
    equal(client.run(odd, "typescript", session=True)["stdout"], "true\n")


@test("a program's own node_modules come before what was installed", timeout=180)
def _():
    client = new_client()
    installed(client, "typescript", "is-odd@3.0.1")
    client.upload("node_modules/is-odd/package.json", b'{"name":"is-odd","main":"own.js"}')
    client.upload("node_modules/is-odd/own.js", b"module.exports = () => 'own'")
    equal(client.run('import isOdd from "is-odd"; console.log(isOdd(3))', "typescript")["stdout"], "own\n")


@test("what is no package's name is refused, and nothing is started for it (H-39)", core=True)
def _():
    client = new_client()
    for language, name in [("python", one) for one in (
            "--index-url=https://x.test", "-r", "-rreq.txt", "/etc/passwd", "./tidy", "..", "https://x.test/a.whl", "tidy @ https://x.test/a",
            "git+https://x.test/a", "file:///etc/passwd", "a;id", "x.whl", "$(id)", "tidy; python_version>'3'", "",
            "tidy[", "tidy[;]", "x" * 300)] + [("typescript", one) for one in (
                "--registry=https://x.test", "../x", "user/repo", "github:user/repo", "x@npm:y@1", "x@file:../y", "x@https://x.test/y",
                "x@../y", "x@y/z", "@a", "@a/b/c", "x.tgz", "x@", "", ".x", "x@git+ssh://h/r", "x@workspace:*")]:
        text, _result = failed(client, language, name)
        contains(text, "packages", f"the refusal of {name!r}")
    contains(failed(client, "python", *["tidy"] * 21)[0], "20")
    contains(failed(client, "python")[0], "packages")
    contains(failed(client, "bash", "curl")[0], "language")
    equal(client.run("ls -A /data", "bash")["stdout"], "")


@test("what cannot be had is told in pip's words and in a sentence: unknown, only as source, with names that climb", timeout=180)
def _():
    client = new_client()
    for name, words in (("nowhere", "No matching distribution found for nowhere"), ("source", "No matching distribution"),
                        ("climber", "outside the target directory")):
        text, result = failed(client, "python", name)
        contains(text, "Nothing was installed")
        equal((result["status"], result["installed"], result["stdout"]), ("error", [], ""))
        contains(result["output"], words)
    equal(client.run("find /data -name '*climb*' -o -name rooted -o -name .work; ls /data", "bash")["stdout"], "")


@test("what would break the image's libraries is not installed: the answer says what, and the packages of before stay", core=True, timeout=240)
def _():
    client = new_client()
    installed(client, "python", "tidy==1.0")
    before = client.run("cd /data/.packages; find . -type f | sort | xargs sha256sum", "bash")["stdout"]
    for package, words in (("needs-numpy", ("numpy 99.0", "pandas (", ", matplotlib.pyplot", ", sklearn")), ("pandas==98.0", ("pandas (ended by signal 11)",)),
                           ("pandas==97.0", ("the way to the index: Connection refused",))):
        text, result = failed(client, "python", package, "tidy==2.0")
        contains(text, "Nothing was installed")
        for word in words:
            contains(result["reason"], word)
        equal(result["installed"], [])
        equal(client.run("cd /data/.packages; find . -type f | sort | xargs sha256sum", "bash")["stdout"], before)
    equal(client.run("import pandas, tidy; print(pandas.__version__ < '97', tidy.word)")["stdout"], "True one\n")
    # What a conversation has broken by itself is not held against a package.
    client.upload(".packages/python/pandas.py", b"raise ImportError('own')\n")
    equal(installed(client, "python", "tidy==2.0"), {"tidy": "2.0", "helper": "0.1"})


@test("a name that programs import leads to its package, and what is there is told without the index", core=True, timeout=180)
def _():
    client = new_client()
    result = install(client, "python", "cv2", "dotenv>=1", "yaml", "python-docx", "PIL", "json", waitMs=300000)
    text = sentences(result)
    for words in ("cv2 is in the package opencv-python-headless", "dotenv is in the package python-dotenv", "PyYAML is there: import yaml",
                  "python-docx is there: import docx", "Pillow is there: import PIL", "json is a part of Python: import json"):
        contains(text, words)
    equal([one["name"] for one in result["structuredContent"]["installed"]], ["opencv_python_headless", "python_dotenv"])
    equal(client.run("import cv2, dotenv; print(cv2.word, dotenv.word)")["stdout"], "seen set\n")
    asked = len(index().asked)
    contains(sentences(install(client, "python", "sklearn", waitMs=300000)), "scikit-learn is there: import sklearn")
    contains(sentences(install(client, "typescript", "lodash", "fs", waitMs=300000)), "lodash is there: import lodash")
    equal(len(index().asked), asked)


@test("an index that is dead, never ends, or says too much: the installation ends, and says how", timeout=240)
def _():
    site = sites.with_settings(**settings(SANDBOX_INDEXES=f"python=https://127.0.0.1:{sites.free_port()}/simple"))
    text, result = failed(new_client(site), "python", "tidy")
    contains(text, "Nothing was installed")
    contains(text, "the package index cannot be reached (Tunnel connection failed: 502 Bad Gateway)")
    equal(result["status"], "error")
    contains(failed(new_client(site), "typescript", "is-odd")[0], "no package index for typescript")
    site = sites.with_settings(**settings(SANDBOX_INDEXES=f"typescript=https://127.0.0.1:{sites.free_port()}"))
    contains(failed(new_client(site), "typescript", "is-odd")[0], "the package index cannot be reached")
    client = new_client()
    equal(failed(client, "python", "slow", timeout=3)[1]["status"], "timeout")
    check(failed(client, "python", "huge", timeout=60)[1]["status"] in ("out_of_memory", "error", "killed"), "the huge page ended it")
    equal(installed(client, "python", "tidy==1.0"), {"tidy": "1.0"})
    wait_until(lambda: not left_over(shared()), 10, "the ways to the index are gone")


def begin_slow(site, client):
    """(run id, path of its proxy's socket) of an installation that goes on until it is cancelled."""
    result = install(client, "python", "slow")["structuredContent"]
    equal(result["status"], "running")
    path = f"{site.root}/.index/{result['runId']}/proxy"
    wait_until(lambda: "Looking in indexes" in runs.look(client, result["runId"])["output"], 30, "pip has begun")
    check(stat.S_ISSOCK(os.stat(path).st_mode), "its proxy listens")
    return result["runId"], path


def ask(path, request, more=b""):
    """The proxy's answer, to its end or to the first 64 KB."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30)
        sock.connect(path)
        sock.sendall(request.encode() + more)
        answer = b""
        while len(answer) < 65536 and b"\r\n\r\n" not in answer:
            part = sock.recv(4096)
            if not part:
                break
            answer += part
        return answer.decode("latin-1")


@test("a caller says how long it waits for an installation: not at all for the answer, or to its end", timeout=180)
def _():
    site = bounded()
    equal(install(new_client(site), "python", "tidy==1.0")["structuredContent"]["status"], "running")
    equal(install(new_client(), "python", "tidy==1.0", waitMs=1)["structuredContent"]["status"], "running")
    equal(installed(new_client(site), "python", "tidy==1.0", waitMs=300000), {"tidy": "1.0"})


@test("the set \"interpreter\" waits for an installation to its end, and tells why one failed", timeout=180)
def _():
    site = sites.with_settings(**settings(SANDBOX_WAIT="1ms", SANDBOX_TIMEOUT="15s", SANDBOX_TIMEOUT_MAX="20s", TOOLS="interpreter"))
    client = site.client()
    client.place = "/mcp"

    def told(tool, **arguments):
        result = client.tool(tool, {"session_id": "s"} | arguments)
        return json.loads(sentences(result)) if tool != "create_sandbox" else sentences(result)
    contains(told("create_sandbox"), "created")
    equal(told("install_package", package_name="tidy==1.0")["error"], None)
    equal(told("execute_code", code="import tidy; print(tidy.word)")["logs"]["stdout"], ["one\n"])
    contains(told("install_package", package_name="unknown")["error"], "pip could not install this")
    contains(told("install_package", package_name="slow")["error"], "timeout")


@test("an installation is a run: it is looked at and cancelled by its id, without a network, and its container is gone then", timeout=180)
def _():
    site = bounded()
    client = new_client(site)
    run_id, _path = begin_slow(site, client)
    container = engine.inspect(warm.container_of(site, run_id))
    equal(container["HostConfig"]["NetworkMode"], "none")
    equal([mount["Target"] for mount in container["HostConfig"]["Mounts"]], ["/data", "/etc/hosts", "/run/index"])
    equal(runs.cancel(client, run_id)["status"], "cancelled")
    wait_until(lambda: not site.all_containers() and not left_over(site), 10, "container and way to the index are gone")


@test("the way to the index leads nowhere else: other hosts, ports, addresses, methods, smuggled requests, a crowd", timeout=180)
def _():
    site = bounded()
    client = new_client(site)
    run_id, path = begin_slow(site, client)
    port, head = index().port, "HTTP/1.1\r\n\r\n"
    equal(ask(path, f"CONNECT 127.0.0.1:{port} {head}").split()[1], "200")
    for target in ("example.test:443", f"localhost:{port}", "127.0.0.1:22", "127.0.0.1:443", "169.254.169.254:80", "[::1]:443",
                   f"[::ffff:127.0.0.1]:{port}", f"127.1:{port}", f"2130706433:{port}", f"0x7f000001:{port}", f"127.0.0.1.:{port}"):
        equal(ask(path, f"CONNECT {target} {head}").split()[1], "403", target)
    for request, status in ((f"GET https://127.0.0.1:{port}/ {head}", "405"), (f"POST / {head}", "405"), (f"CONNECT / {head}", "400"),
                            (f"CONNECT 127.0.0.1:{port}\r\n\r\n", "400"), (f"CONNECT 127.0.0.1:{port}@evil.test:443 {head}", "400"),
                            (f"CONNECT 127.0.0.1:{port} HTTP/1.1\nHost: x\r\n\r\n", "400"), ("x" * 9000, "400"),
                            (f"CONNECT 127.0.0.1:{port} {head[:-2]}A: \0\r\n\r\n", "400")):
        equal(ask(path, request).split()[1], status, request[:60])
    # What follows the first request is the index's to read, not the proxy's.
    smuggled = ask(path, f"CONNECT 127.0.0.1:{port} {head}", b"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n")
    equal(smuggled.count("HTTP/1.1"), 1)
    crowd = []
    for _ in range(1000):
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        if sock.connect_ex(path) != 0:
            sock.close()
            break
        crowd.append(sock)
    check(len(crowd) < 1000, "a thousand connections were taken at once")
    for sock in crowd:
        sock.close()

    def serves():
        try:
            return ask(path, f"CONNECT 127.0.0.1:{port} {head}").split()[1:2] == ["200"]
        except BlockingIOError:
            return False
    wait_until(serves, 30, "it serves again")
    equal(runs.cancel(client, run_id)["status"], "cancelled")


@test("the proxy has no rights, and dies with its installation", timeout=120)
def _():
    site = bounded()
    client = new_client(site)
    run_id, _path = begin_slow(site, client)
    listening = subprocess.run(["ss", "-xlpH"], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [line for line in listening if f"/.index/{run_id}/" in line]
    pids = {word.split(",")[0] for line in ours for word in line.split("pid=")[1:]}
    check(pids, f"no listener: {ours}")
    for pid in pids:
        equal((procs.status(pid, "Uid").split(), procs.status(pid, "CapEff").strip("0"), procs.status(pid, "Groups")),
              (["65534"] * 4, "", ""))
        check(procs.is_confined(pid), "the proxy is not confined")
    runs.cancel(client, run_id)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 10, "the proxy is gone")


@test("nothing that lies in the conversation runs while packages are installed", timeout=180)
def _():
    client = new_client()
    trap = b"open('/data/ran', 'a').write(__file__ + '\\n')\n"
    for name in ("pip.py", "sitecustomize.py", "usercustomize.py", "json.py", "runpy.py", ".packages/python/pip.py",
                 ".packages/python/_manylinux.py", ".packages/python/keyring.py", ".packages/python/sitecustomize.py",
                 ".packages/python/truststore.py", ".local/lib/python3.13/site-packages/usercustomize.py"):
        client.upload(name, trap)
    client.upload(".packages/python/x.pth", b"import _manylinux\n")
    for name in ("pip.conf", ".pip/pip.conf", ".config/pip/pip.conf"):
        client.upload(name, b"[global]\nindex-url = https://x.test\n")
    equal(installed(client, "python", "tidy==1.0"), {"tidy": "1.0"})
    code = b'require("fs").appendFileSync("/data/ran", "scanner"); export const scanner = { version: "1", scan: async () => [] };'
    client.upload(".packages/typescript/trap.ts", code)
    for folder in ("", ".packages/typescript/"):
        client.upload(f"{folder}bunfig.toml", b'preload = ["/data/.packages/typescript/trap.ts"]\n[install.security]\n'
                                              b'scanner = "/data/.packages/typescript/trap.ts"\n')
        client.upload(f"{folder}.bunfig.toml", b'[install]\nregistry = "https://x.test/"\n')
        client.upload(f"{folder}.npmrc", b"registry=https://x.test/\n")
    client.upload(".packages/typescript/package.json", json.dumps(
        {"scripts": {"preinstall": "echo x > /data/ran"}, "dependencies": {"x": "file:/data/x", "is-number": "^7.0.0"}}).encode())
    equal(installed(client, "typescript", "is-odd@3.0.1")["is-odd"], "3.0.1")
    equal(client.run("cat /data/ran; ls /data/.packages/typescript/node_modules/x", "bash")["stdout"], "")


@test("runs stay offline after an installation: no way to the index, no name resolved, no interface but loopback", timeout=120)
def _():
    client = new_client()
    installed(client, "python", "tidy==1.0")
    code = f"""import socket, os, tidy
def fails(work, *arguments):
    try:
        work(*arguments)
    except OSError:
        return True
print(os.path.exists('/run/index'), 'http_proxy' in os.environ, sorted(os.listdir('/sys/class/net')))
print(fails(socket.getaddrinfo, 'x.attacker.test', 443), fails(socket.create_connection, ('127.0.0.1', {index().port}), 2))"""
    equal(client.run(code)["stdout"], "False False ['lo']\nTrue True\n")


@test("what a program makes beside its packages is told as ever, and what is installed is not served as its work", timeout=120)
def _():
    client = new_client()
    installed(client, "python", "tidy==1.0")
    result = client.run("open('made', 'w').write(__import__('tidy').word); open('.packages/python/more', 'w')")
    equal([one["name"] for one in result["files"]], ["made"])


@test("what is installed counts as the conversation's files do: an installation that passes the bound is removed whole", timeout=120)
def _():
    client = new_client(bounded())
    installed(client, "python", "tidy==1.0")
    text, result = failed(client, "python", "shared-a", "shared-b")
    contains(text, "SANDBOX_FILES")
    equal((result["status"], result["installed"]), ("disk_limit", []))
    equal(client.run("import tidy; print(tidy.word)", waitMs=300000)["stdout"], "one\n")

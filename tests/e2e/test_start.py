"""./start.sh as a new user runs it, and the examples of all README.md files as they stand."""
import functools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

import clone
import pages
import procs
import rights
from harness import IS_ROOT, TOP, Skip, check, contains, equal, in_time, test, wait_until

TARGET = "./start.sh from a fresh clone ends in a running server: the page's URL, a client's line, one command, where the token is"


@test(TARGET, timeout=1800)
def _():
    status, output = clone.first_start()
    house = clone.made()
    equal(status, 0, f"exit status; output: {output[-2500:]}")
    contains(output, f"https://localhost:{house.https_port}")
    contains(output, f"claude mcp add --transport http sandcgi http://localhost:{house.http_port}/mcp")
    contains(output, "9 of 9")
    check(f"http://localhost:{house.http_port}/\n" in output or "(no page at /: " in output, "neither the page nor why there is none")
    contains(output, "MCP_API_TOKEN")
    check(house.setting("MCP_API_TOKEN") not in output, "the token itself is printed")
    equal(output.count("\ncurl "), 1, "one command to paste")
    equal(house.client().request("ping").status, 200)


@test(".env is made with random secrets and mode 0600, never again")
def _():
    house = clone.started()
    equal(stat.S_IMODE(os.stat(house.env_file).st_mode), 0o600)
    for name in ("FILE_SECRET", "MCP_API_TOKEN"):
        check(len(house.setting(name)) >= 32, name)
    check(house.setting("FILE_SECRET") != house.setting("MCP_API_TOKEN"), "the same secret twice")


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


@test("./start.sh as root: no file with a secret is readable for the workers' account, nginx's or another")
def _():
    if not IS_ROOT:
        raise Skip("needs root to be another account")
    house = clone.started()
    run = f"{house.state}/run"
    keys = [f"{house.state}/tls/{name}" for name in os.listdir(f"{house.state}/tls") if "PRIVATE KEY" in _read(f"{house.state}/tls/{name}")]
    check(keys, "no key of the certificate")
    secrets = [house.setting("FILE_SECRET"), house.setting("MCP_API_TOKEN"), _read(f"{run}/front-secret").strip(), rights.key_of(_read(f"{run}/file-key.conf")),
               *(_read(key).splitlines()[1] for key in keys)]

    def as_root(words):
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for account in ("www-data", "nobody"):
        as_root(rights.as_account(account, "test", "-r", f"{house.folder}/README.md", "-a", "-x", run))
    rights.check_closed(as_root, ("www-data", "nobody"), secrets, (house.folder, house.state), 5)


@test("the commands that start.sh prints work as they stand", timeout=120)
def _():
    house = clone.started()
    commands = [line.strip() for line in clone.first_start()[1].splitlines() if re.match(r"\s*\$? ?\s*(curl|TOKEN=)", line)]
    if not commands:
        raise Skip("no line that begins with curl")
    done = house.shell("set -e\n" + "\n".join(line.removeprefix("$ ") for line in _whole_commands(clone.first_start()[1])))
    equal(done.returncode, 0, done.stderr[-800:] + done.stdout[-800:])
    for word in ("42", "status", "ok"):
        contains(done.stdout, word)
    check('"error"' not in done.stdout, done.stdout[-500:])


@test("sandcgi token, as start.sh and README name it, makes a token that nginx knows at once, and takes it away", timeout=120)
def _():
    house = clone.started()
    done = house.shell("""set -e
token=$(build/sandcgi token add --config .env --tenant alice)
call() { curl -s -o /dev/null -w '%{http_code} ' --max-time 20 "http://localhost:$(sed -n s/^NGINX_HTTP_PORT=//p .env)/mcp" -H "Authorization: Bearer $token" \\
    -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'; }
until_is() { for i in {1..50}; do [[ $(call) != "$1 " ]] || { echo "is $1"; return; }; sleep 0.1; done; call; }
until_is 200
build/sandcgi token list --config .env
build/sandcgi token revoke --config .env --tenant alice
until_is 401
""")
    equal(done.returncode, 0, done.stderr[-800:] + done.stdout[-800:])
    for words in ("is 200", " alice ", "(stored as it is)", "is 401"):
        contains(done.stdout, words)


def _whole_commands(output):
    """Lines that begin with a command, with their continuations."""
    lines, wanted = output.splitlines(), False
    for line in lines:
        text = line.strip()
        if wanted or re.match(r"(\$ )?(curl|TOKEN=)", text):
            yield text
            wanted = text.endswith("\\")


@test("a second ./start.sh takes seconds and changes nothing that is up to date", timeout=120)
def _():
    house = clone.started()
    before = _picture(house)
    start = time.monotonic()
    status, output = house.start_sh(timeout=100)
    equal(status, 0, output[-1500:])
    in_time(start, 30, "nothing was built again")
    equal(_picture(house), before)


def _picture(house):
    """Settings, certificate, binary and the running processes' pids."""
    paths = [house.env_file, f"{house.folder}/build/sandcgi"]
    paths += [f"{house.state}/tls/{name}" for name in sorted(os.listdir(f"{house.state}/tls"))]
    pids = {}
    for name in sorted(os.listdir(f"{house.state}/run")):
        if name.endswith(".pid"):
            with open(f"{house.state}/run/{name}", encoding="ascii") as file:
                pids[name] = file.read().strip()
    check(len(pids) >= 2, f"pid files: {pids}")
    return [(path, os.stat(path).st_mtime_ns, os.stat(path).st_ino) for path in paths], pids


@test("--status has one line per part; --help names the options; a typo names what exists")
def _():
    house = clone.started()
    status, output = house.start_sh("--status", timeout=60)
    equal(status, 0, output)
    check(len(output.strip().splitlines()) >= 3, output)
    for word in ("nginx", "sandcgi"):
        contains(output, word)
    contains(output, "queued")  # what the server tells of itself
    status, output = house.start_sh("--help", timeout=20)
    equal(status, 0)
    for option in ("--stop", "--status", "--foreground"):
        contains(output, option)
    status, output = house.start_sh("--stpo", timeout=20)
    check(status != 0, "a typo is no error")
    contains(output, "--stpo")
    check(len(output.strip().splitlines()) <= 3, output)


# ---- README ----

# In the order in which a reader meets them: the block "setup" of the first is pasted before every other one.
PAGES = ("README.md", "common/README.md", "common/files.md", "common/sandboxes.md")


@functools.cache
def _examples():
    """Every block that is walked, by name."""
    return {name: text for page in PAGES for name, text in pages.walked(page).items()}


def _example(name, timeout=120):
    """Pastes one example after the setup; what it printed. The checkout stays as it is."""
    house = clone.started()
    before = house.shell("git status --short --ignored").stdout
    done = house.shell(_examples()["setup"] + _examples()[name], timeout)
    equal((done.returncode, done.stderr), (0, ""), name)
    equal(house.shell("git status --short --ignored").stdout, before, name)
    return done.stdout


@test("README: one call gives the answer that stands behind it")
def _():
    equal(_example("call"), pages.walked("README.md", "answer")["call"])


@test("README: upload a CSV")
def _():
    out = json.loads(_example("upload"))
    equal((out["success"], out["file"]["name"], out["file"]["size"]), (True, "sales.csv", 32))


@test("README: pandas describes it, matplotlib draws, the markdown link is printed", timeout=120)
def _():
    out = _example("chart")
    contains(out, "mean")
    check(re.search(r"!\[chart\]\(https://localhost:\d+/files/[0-9a-f]{64}/[\w-]{22}/chart\.png\)", out), out)


@test("README: curl downloads the chart")
def _():
    contains(_example("download"), "chart.png")
    with open(f"{clone.started().home}/sandcgi-examples/chart.png", "rb") as file:
        equal(file.read(8), b"\x89PNG\r\n\x1a\n")


@test("README: TypeScript reads the CSV of the same conversation and writes JSON")
def _():
    out = json.loads(_example("typescript"))
    equal((out["success"], out["stdout"]), (True, "3 rows\n"))
    equal(out["files"][0]["name"], "sales.json")


@test("README: list_runners names languages, versions and libraries")
def _():
    lines = [json.loads(line) for line in _example("runners").splitlines()]
    by_name = {line[0]: line for line in lines}
    check("pandas" in by_name["python"] and "papaparse" in by_name["typescript"] and "bash" in by_name, str(by_name))


@test("README: a program that takes longer goes on behind its answer; get_run brings the rest")
def _():
    begun = json.loads(_example("long"))
    equal(begun["status"], "running")
    ended = json.loads(_example("rest"))
    equal((ended["status"], ended["stdout"]), ("ok", "".join(f"step {n}\n" for n in range(5))))


@test("README: a run in the background is listed and cancelled")
def _():
    lines = _example("background").splitlines()
    check("running" in [json.loads(line)[1] for line in lines[:-1]], str(lines))
    equal(json.loads(lines[-1]), "cancelled")


@test("README: a file is written, listed and read without a program")
def _():
    lines = _example("files").splitlines()
    equal([json.loads(line) for line in lines[:2]], [["notes/todo.md", 10], "notes/todo.md"])
    equal(lines[2], "- a chart")


@test("README: a process lives on in a persistent sandbox, between two calls")
def _():
    equal(_example("sandbox").split(), ["true", "ticking", "closed"])


@test("README: a session keeps a variable")
def _():
    lines = _example("session").splitlines()
    equal([json.loads(line) for line in lines], [["42\n", False], 1])


@test("README: curl uploads a large file by a link")
def _():
    equal(json.loads(_example("put")), ["numbers.txt", 6888896])


@test("README: an archive of a conversation is fetched and unpacked into another")
def _():
    equal(json.loads(_example("archive")), ["project/a.txt"])


@test("README: a package of npm is installed, and the next program imports it")
def _():
    lines = _example("package").splitlines()
    if "cannot be reached" in lines[0]:
        raise Skip(f"the registry of npm: {json.loads(lines[0])}")
    check(any((one["name"], one["version"]) == ("is-odd", "3.0.1") for one in json.loads(lines[0])), lines[0])
    equal(lines[1], "true")


@test("README has no example that is not tested here")
def _():
    equal(set(_examples()), {"setup", "call", "upload", "chart", "download", "typescript", "runners", "long", "rest", "background", "files", "put", "archive", "package",
                             "sandbox", "session"})


# ---- what goes wrong ----

@test("bad lines of .env: file, line, key and what is allowed", timeout=120)
def _():
    house = clone.started()
    for line, words in (("SANDBOX_MEMORY=lots", ("SANDBOX_MEMORY",)), ("SANDBOX_TIMEOUT=-5s", ("SANDBOX_TIMEOUT",)),
                        ("SANDCGI_AUTH=magic", ("SANDCGI_AUTH", "nginx", "token")), ("SANDBOX_NETWORK=perhaps", ("SANDBOX_NETWORK",)),
                        ("SANDBOX_MEMROY=1g", ("SANDBOX_MEMROY",)), ("no equals sign", ("line",)),
                        ("SANDBOX_USER=0:0", ("SANDBOX_USER",)), ("SANDCGI_WORKERS=100000", ("SANDCGI_WORKERS", "1000"))):
        status, output = _check_config(house, line)
        check(status != 0, f"{line} is accepted")
        for word in words:
            contains(output, word, line)
        equal(len(output.strip().splitlines()), 1, f"lines for {line}")
        if line.startswith("SANDBOX_M") or "AUTH" in line:
            check(re.search(r"bad\.env.*\b\d+\b", output), f"file and line: {output}")


def _check_config(house, *lines):
    """sandcgi's own word on the clone's .env with further lines; (status, output)."""
    with open(house.env_file, encoding="utf-8") as file:
        text = file.read()
    path = f"{os.path.dirname(house.folder)}/bad.env"
    lines = (f"SANDBOX_ROOT={house.state}/sandboxes", f"PUBLIC_BASE_URL=https://localhost:{house.https_port}", *lines)
    keys = {line.split("=", 1)[0] for line in lines}
    kept = [one for one in text.splitlines() if one.split("=", 1)[0] not in keys]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*kept, *lines]) + "\n")
    os.chmod(path, 0o600)
    done = house.shell(f"build/sandcgi check --config {path} 2>&1 >/dev/null")
    return done.returncode, done.stdout


@test("./start.sh with a bad .env ends in one line that says what to do, and leaves what runs alone", timeout=120)
def _():
    house = clone.started()
    good = _text(house.env_file)
    for line, word in (("SANDBOX_MEMORY=lots", "SANDBOX_MEMORY"), ("FILE_SECRET=short", "FILE_SECRET")):
        with open(house.env_file, "w", encoding="utf-8") as file:
            file.write(f"{good}{line}\n")
        status, output = house.start_sh(timeout=100)
        with open(house.env_file, "w", encoding="utf-8") as file:
            file.write(good)
        check(status != 0, f"{line} is accepted")
        contains(output.strip().splitlines()[-1], word)
        equal(house.client().request("ping").status, 200)


@test("a secret that is missing, short or the example's is refused, and not shown (H-52)", timeout=120)
def _():
    house = clone.started()
    with open(f"{house.folder}/.env.example", encoding="utf-8") as file:
        example = re.search(r"^#?\s*FILE_SECRET=(.*)$", file.read(), re.M)
    for value in ("", "short", "x" * 64, "change-me-change-me-change-me-change-me", example.group(1) if example else ""):
        status, output = _check_config(house, f"FILE_SECRET={value}")
        check(status != 0, f"{value!r} is accepted")
        contains(output, "FILE_SECRET")
        check(not value or len(value) < 6 or value not in output, "the secret is printed")


@test("a port in use is one clear line", timeout=300)
def _():
    clone.started()
    other = clone.Clone()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        other.https_port = sock.getsockname()[1]
        # The images are there, and building again takes what the first clone has built.
        os.symlink(f"{clone.made().folder}/build", f"{other.folder}/build")
        status, output = other.start_sh(timeout=280)
        other.start_sh("--stop", timeout=60)
    check(status != 0, f"it starts although port {other.https_port} is taken")
    contains(output, str(other.https_port))


@test("--stop ends everything that start.sh started; a start after it is quick and keeps files and token", timeout=180)
def _():
    house = clone.started()
    client = house.client()
    url = client.upload("kept.txt", b"kept", "stop-test")["file"]["url"]
    token = house.setting("MCP_API_TOKEN")
    status, output = house.start_sh("--stop", timeout=60)
    equal(status, 0, output)
    client.close()
    try:
        client.request("ping")
        raise AssertionError("still answers")
    except OSError:
        pass
    status, output = house.start_sh("--status", timeout=60)
    check(status != 0, f"--status after --stop: {output}")
    equal(house.start_sh("--stop", timeout=60)[0], 0, "a second --stop")
    start = time.monotonic()
    status, output = house.start_sh(timeout=120)
    equal(status, 0, output[-1500:])
    in_time(start, 30, "started again")
    equal(house.setting("MCP_API_TOKEN"), token)
    done = house.shell(f"curl -sk '{url}'")
    equal(done.stdout, "kept")


@test("--foreground stays; Ctrl-C stops everything", timeout=180)
def _():
    house = clone.started()
    house.start_sh("--stop", timeout=60)
    log = f"{os.path.dirname(house.folder)}/foreground.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(["./start.sh", "--foreground"], cwd=house.folder, env=house.environment(), stdout=out, stderr=out,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until(lambda: "Ctrl-C" in _text(log) or process.poll() is not None, 100, "it says that Ctrl-C ends it")
        check(process.poll() is None, f"it did not stay: {_text(log)[-1500:]}")
        check(_pings(house), "it does not answer")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        check(not _pings(house), "it still answers")
    finally:
        procs.end_group(process)
        status, output = house.start_sh(timeout=120)
        equal(status, 0, f"the next start: {output[-1500:]}")


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _pings(house):
    try:
        return house.client().request("ping").status == 200
    except OSError:
        return False

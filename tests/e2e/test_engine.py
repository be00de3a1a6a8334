"""The engine from the server's side: away and back, images that come and go, other ways to reach it."""
import os
import re
import secrets
import subprocess
import time

import engine
import proxy
import sites
from harness import IS_ROOT, Skip, at_test_end, check, contains, equal, holds_for, in_time, new_folder, test, wait_until
from mcp import ToolError

PLAIN = """FROM debian:trixie-slim
RUN mkdir /data && chown 1000:1000 /data
COPY entry.sh /entry.sh
LABEL sandbox.runner=true sandbox.language={language}
ENTRYPOINT ["sh", "/entry.sh"]
"""
OWN_IMAGES = {"SANDBOX_IMAGES": f"{engine.WORKBENCH}, e2e-engine-*"}
PLAIN_ENTRY = "set -e\ncat >/tmp/script.sh\ncd /data\nexec sh /tmp/script.sh\n"


def _languages(client):
    return {r["language"]: r["image"] for r in client.structured("list_runners", {})["languages"]}


def _site():
    """A server that takes images which no other does: the engine has the servers of other tests, too."""
    return sites.with_settings(**OWN_IMAGES)


def _image(repository, language):
    """A runner image for a made-up language; removed at the end of the test."""
    at_test_end(engine.remove_image, repository)
    engine.build(repository, engine.shell_runner(language), new_folder("image"))


def _plain_image(repository, language):
    at_test_end(engine.remove_image, repository)
    engine.build(repository, PLAIN.format(language=language), new_folder("image"), {"entry.sh": PLAIN_ENTRY})


@test("engine away: a clear error at once, everything else works; back again: no restart is needed", timeout=90, core=True)
def _():
    relay = proxy.Proxy(f"{new_folder('relay')}/engine.sock")
    site = sites.own({"DOCKER_HOST": f"unix://{relay.address}"})
    client = sites.new_conversation(site.client())
    for _ in range(2):
        start = time.monotonic()
        text = client.run_error("print(1)")
        in_time(start, 6, "answered")
        contains(text, "engine")
        check("Traceback" not in text, text)
        equal(client.upload("f", b"kept")["success"], True)
        check("run_code" in {tool["name"] for tool in client.result("tools/list")["tools"]}, "run_code is not listed")
        relay.start()

        def works():
            try:
                return client.run("cat f", "bash")["stdout"] == "kept"
            except ToolError:
                return False
        wait_until(works, 10, "runs work again", pause=0.2)
        relay.stop()
        wait_until(lambda: not works(), 10, "the loss is noticed", pause=0.2)


@test("a new runner image is offered within five seconds, a removed one no longer; the tool list follows", timeout=90)
def _():
    site = _site()
    client = sites.new_conversation(site.client())
    language = "new" + secrets.token_hex(3)
    check(language not in _languages(client), "too early")
    _image(f"e2e-engine-{language}", language)
    wait_until(lambda: language in _languages(client), 5, "list_runners names it")
    run_code = next(tool for tool in client.result("tools/list")["tools"] if tool["name"] == "run_code")
    check(language in run_code["inputSchema"]["properties"]["language"]["enum"], "the schema's enum")
    equal(client.run("echo it runs", language)["stdout"], "it runs\n")
    # Not while a container of it is being removed: the engine would only take the name away.
    wait_until(lambda: not site.containers(), 10, "no container")
    engine.remove_image(f"e2e-engine-{language}")
    text = client.run_error("echo gone", language)
    check(language in text or "bash" in text, f"image missing: {text!r}")
    wait_until(lambda: language not in _languages(client), 5, "list_runners has forgotten it")
    contains(site.log(), f"runners: the image e2e-engine-{language}:latest has gone, and nothing runs {language} now; ./start.sh")


@test("H-19: an image with the label that is not on the allow-list is never offered, nor one without a tag")
def _():
    client = sites.client()
    language = "evil" + secrets.token_hex(3)
    _image(f"e2e-engine-{language}", language)
    at_test_end(engine.remove_image, f"example.org/sandcgi-runner-{language}")
    engine.tag(f"e2e-engine-{language}", f"example.org/sandcgi-runner-{language}")
    own_client = sites.new_conversation(_site().client())
    wait_until(lambda: sorted(_languages(own_client)) == sorted(["bash", "python", "typescript", language]), 10, "SANDBOX_IMAGES")
    holds_for(lambda: language not in _languages(client), 3, "it is not offered")
    contains(client.run_error("echo never", language), "python")
    equal(own_client.run("echo allowed", language)["stdout"], "allowed\n")


@test("a plain image that reads code on its standard input works unchanged", timeout=120)
def _():
    language = "plain" + secrets.token_hex(3)
    _plain_image(f"e2e-engine-{language}", language)
    client = sites.new_conversation(_site().client())
    wait_until(lambda: language in _languages(client), 10, "it is offered")
    result = client.run("echo out; echo err >&2; echo \"$GREETING\" >made; id -u; pwd", language, environment={"GREETING": "hi there"})
    word, uid, *place = result["stdout"].split("\n")
    check(sites.is_sandbox_user(uid), uid)
    equal((result["status"], word, place, result["stderr"]), ("ok", "out", ["/data", ""], "err\n"))
    equal([(f["name"], f["size"]) for f in result["files"]], [("made", 9)])
    contains(client.run("echo $FILE_BASE_URL", language)["stdout"], "/files/")
    for code in (1, 124, 137, 143):
        result = client.run(f"exit {code}", language)
        equal((result["status"], result["exitCode"]), ("error", code))
    start = time.monotonic()
    result = client.run("trap '' TERM; echo begun; setsid sleep 100 & sleep 100", language, timeout=2)
    equal((result["status"], result["stdout"]), ("timeout", "begun\n"))
    in_time(start, 6, "answered")
    result = client.run("head -c 600M /dev/zero | tail >/dev/null", language)
    check(result["status"] in ("out_of_memory", "error", "killed"), result["status"])
    for argument in ({"stdin": "x"}, {"args": ["x"]}):
        contains(client.run_error("true", language, **argument), "stdin")
    big = client.run("yes | head -c 3000000", language)
    equal((big["status"], big["truncation"]["stdout"]["total"]), ("ok", 3000000))
    equal(client.run(": " + "x" * 900000 + "\necho read", language)["stdout"], "read\n")


@test("SANDBOX_HOST_PATH: the same directory under another name for the engine")
def _():
    if not IS_ROOT:
        raise Skip("only root can mount")
    real = new_folder("real")
    site = sites.own({"SANDBOX_HOST_PATH": real}, start=False)
    done = subprocess.run(["mount", "--bind", real, site.root], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"mount --bind: {done.stderr.strip()}")
    at_test_end(subprocess.run, ["umount", "-l", site.root])
    site.start()
    client = sites.new_conversation(site.client())
    client.upload("in.txt", b"through")
    result = client.run("cat in.txt >out.txt; cat out.txt", "bash")
    equal(result["stdout"], "through")
    equal(client.download(result["files"][0]["url"]).body, b"through")
    wait_until(lambda: not site.containers(), 5, "the container is removed, by its label")


@test("a sandbox directory that the engine's host does not have is an error, and the engine makes none")
def _():
    missing = f"{new_folder('host')}/missing"
    site = sites.with_settings(SANDBOX_HOST_PATH=missing)
    client = sites.new_conversation(site.client())
    contains(client.run_error("echo x", "bash"), "the sandbox directory does not exist on the container engine's host")
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "language": "bash"}),
             "the sandbox directory does not exist")
    for what in "run", "sandbox":
        line = re.compile(rf"warn broker: {what} \w+ image=sandcgi-runner-workbench:latest: the sandbox directory does not exist")
        wait_until(lambda line=line: line.search(site.log()), 5, f"a line about the {what}")
    check(not os.path.exists(missing), "the engine made the directory")
    wait_until(lambda: not site.all_containers(), 5, "no container is left")


@test("a full file system: the upload and the program are told, nothing half-written is left", core=True)
def _():
    if not IS_ROOT:
        raise Skip("only root can mount")
    site = sites.own({"SANDBOX_DISK_RESERVE": "0"}, start=False)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0755", "tmpfs", site.root],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"mount: {done.stderr.strip()}")
    at_test_end(subprocess.run, ["umount", "-l", site.root])
    site.start()
    client = sites.new_conversation(site.client())
    client.upload("first", b"x" * 1000)
    try:
        client.upload("second", b"x" * (4 << 20))
        raise AssertionError("4 MB into 3 MB")
    except ToolError as refused:
        check("room" in refused.text or "space" in refused.text, refused.text)
    equal(os.listdir(f"{site.root}/.staging"), [], ".staging")
    result = client.run("ls; head -c 5M /dev/zero >fill || echo failed", "bash")
    equal(result["stdout"], "first\nfailed\n")
    contains(result["stderr"], "No space left")
    equal(client.run("rm fill; echo free", "bash")["stdout"], "free\n")
    client.upload("third", b"y")


@test("the engine over TCP, and over TLS with client certificates; a wrong certificate is a clear error", timeout=120)
def _():
    language = "tls" + secrets.token_hex(3)
    _plain_image(f"e2e-engine-{language}", language)
    folder = proxy.make_certificates()
    plain = proxy.Proxy().start()
    secure = proxy.Proxy(context=proxy.tls_context(folder)).start()
    for settings in ({"DOCKER_HOST": f"tcp://127.0.0.1:{plain.port}"},
                     {"DOCKER_HOST": f"tcp://localhost:{secure.port}", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": folder}):
        site = sites.own({"SANDBOX_IMAGES": "sandcgi-runner-*, e2e-engine-*"} | settings)
        client = sites.new_conversation(site.client())
        equal(client.run("import sys\nprint(sys.stdin.read())", stdin="x" * 100000)["truncation"]["stdout"]["total"], 100001)
        equal(client.run("yes | head -c 3000000", "bash")["truncation"]["stdout"]["total"], 3000000)
        equal(client.run("sleep 9", "bash", timeout=1)["status"], "timeout")
        equal(client.run("echo plain; exit 3", language)["exitCode"], 3, "half-closed input")
    stranger = proxy.make_certificates()
    site = sites.own({"DOCKER_HOST": f"tcp://localhost:{secure.port}", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": stranger})
    contains(sites.new_conversation(site.client()).run_error("print(1)"), "engine")
    contains(site.log(), "certificate", "the log")


@test("the engine refuses a start (unknown runtime): an error, its words in the log, no container left")
def _():
    site = sites.with_settings(SANDBOX_RUNTIME="no-such-runtime")
    check(sites.new_conversation(site.client()).run_error("print(1)"), "no text")
    contains(site.log(), "no-such-runtime", "the log")
    wait_until(lambda: not site.containers(), 5, "no container is left")


@test("limits of the settings arrive in the container", core=True)
def _():
    site = sites.with_settings(SANDBOX_MEMORY="96m", SANDBOX_PIDS="20", SANDBOX_TMP="8m", SANDBOX_CPUS="1.5", SANDBOX_NOFILE="100",
                               SANDBOX_USER="1234:4321")
    client = sites.new_conversation(site.client())
    result = client.run("ulimit -n; id -u; id -g; df --output=size -m /tmp | tail -1; touch mine; stat -c %u:%g mine", "bash")
    equal([line.strip() for line in result["stdout"].split("\n")], ["100", "1234", "4321", "8", "1234:4321", ""])
    wait_until(lambda: not site.containers(), 10, "the first container is removed")
    connection = client.begin_cancellable("sleep 20", "bash")
    # Running: the engine lists a container before it can be asked for it.
    found = wait_until(lambda: [one for one in site.containers() if one["State"] == "running"], 10, "a container")
    host = engine.inspect(found[0]["Id"])["HostConfig"]
    connection.close()
    equal((host["Memory"], host["MemorySwap"], host["PidsLimit"], host["CpuQuota"] / host["CpuPeriod"]), (96 << 20, 96 << 20, 20, 1.5))


@test("without settings a program may have 1 GiB, at most a quarter of the machine's memory, and one processor where there are two")
def _():
    site = sites.with_settings(SANDBOX_MEMORY=None, SANDBOX_CPUS=None)
    client = sites.new_conversation(site.client())
    connection = client.begin_cancellable("sleep 20", "bash")
    found = wait_until(lambda: [one for one in site.containers() if one["State"] == "running"], 10, "a container")
    host = engine.inspect(found[0]["Id"])["HostConfig"]
    connection.close()
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    check(host["Memory"] == host["MemorySwap"] <= min(machine // 4, 1 << 30), host["Memory"])
    check(host["Memory"] == 1 << 30 or machine < 5 << 30 or os.path.exists("/sys/fs/cgroup/memory.max"), host["Memory"])
    equal(host["CpuQuota"] / host["CpuPeriod"], 1 if os.cpu_count() > 1 else 0.5)

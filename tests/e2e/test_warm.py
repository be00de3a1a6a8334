"""Warm containers: a run claims one, nothing of one run is in another, and every call is answered, whatever happens to them."""
import json
import os
import re
import signal
import subprocess
import time

import engine
import monitoring
import pool
import procs
import runs
import sites
import warm
from harness import IS_ROOT, Failed, Skip, at_test_end, check, contains, equal, holds_for, new_folder, test, wait_until

CALLS = 20
OUTPUTS = int(os.environ.get("SANDCGI_TEST_OUTPUTS") or 60)
MEGABYTE = 1 << 20


@test("a new conversation is served by a warm container, and another takes its place", core=True)
def _():
    site = warm.shared()
    for language, code in (("python", "print('out')"), ("typescript", "console.log('out')"), ("bash", "echo out")):
        result, row = warm.run_waiting(site, warm.new_client(site), code, language)
        equal((result["status"], result["stdout"]), ("ok", "out\n"))
        check(row, f"{language}: run {result['runId']} is none of those that waited")
        wait_until(lambda: re.search(f" prestarted=yes .* run={result['runId']}", site.log()), 5, "the log says that it waited")  # noqa: B023
        check(pool.wait_for(site, language=language, sandbox=""), "refilled")
        check(row["runId"] not in {one["runId"] for one in pool.unclaimed(site)}, "claimed, and still among those that wait")
        wait_until(lambda: not warm.container_of(site, row["runId"]), 10, "the used container is gone")  # noqa: B023


@test("files of a run in a warm container belong to the conversation: for later runs, downloads, uploads")
def _():
    site = warm.shared()
    client = warm.new_client(site)
    result, _row = warm.run_waiting(site, client, "import os; os.mkdir('d'); open('d/made', 'w').write('by a run')")
    equal([one["name"] for one in result["files"]], ["d/made"])
    equal(client.download(result["files"][0]["url"]).body, b"by a run")
    client.upload("given", b"by hand")
    result = client.run("cat d/made given; pwd; stat -c %u:%g . | sed s/$(id -u)/mine/g", "bash")
    equal(result["stdout"], "by a runby hand/data\nmine:mine\n")


@test("an upload comes first: the conversation exists, and its run sees the file")
def _():
    site = warm.shared()
    pool.wait_for(site, language="python", sandbox="")
    client = warm.new_client(site)
    client.upload("given", b"first")
    equal(client.run("print(open('given').read())")["stdout"], "first\n")


@test("a known conversation's next run finds a warm container of its own")
def _():
    site = warm.shared()
    client = warm.new_client(site)
    for n in range(3):
        client.run(f"open('count', 'a').write('{n}')")
        result, own = warm.run_next(site, client, "print(open('count').read())")
        equal((result["stdout"], own), ("012"[:n + 1] + "\n", True))


LEAVE = r"""
import ctypes, os, random, subprocess, sys, tempfile
open('/tmp/canary', 'w').write('x')
open('/dev/shm/canary', 'w').write('x')
open(os.path.expanduser('~/.profile'), 'w').write('export CANARY=1')
os.environ['CANARY'] = '1'
libc = ctypes.CDLL(None)
segment = libc.shmget(0x5ca1ab1e, 4096, 0o1777)
queue = libc.msgget(0x5ca1ab1e, 0o1777)
subprocess.Popen(['setsid', 'sleep', '77.123'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
import json
json.canary = random.canary = sys.canary = 1
try:
    open(os.path.dirname(json.__file__) + '/canary.py', 'w')
    print('the library can be written')
except OSError:
    pass
os.umask(0)
os.chdir('/tmp')
print(segment >= 0 or queue >= 0)
"""
FIND = r"""
import ctypes, json, os, random, sys
libc = ctypes.CDLL(None)
found = []
for path in ('/tmp/canary', '/dev/shm/canary', os.path.expanduser('~/.profile')):
    found += [path] if os.path.exists(path) else []
found += sorted(os.listdir('/dev/shm'))
found += ['environment'] if 'CANARY' in os.environ else []
found += ['shm'] if libc.shmget(0x5ca1ab1e, 0, 0) >= 0 else []
found += ['msg'] if libc.msgget(0x5ca1ab1e, 0) >= 0 else []
found += [m.__name__ for m in (json, random, sys) if hasattr(m, 'canary')]
for pid in filter(str.isdigit, os.listdir('/proc')):
    with open(f'/proc/{pid}/cmdline', 'rb') as file:
        found += ['process'] if b'77.123' in file.read() else []
old = os.umask(0o22)
found += ['umask'] if old == 0 else []
found += ['cwd'] if os.getcwd() != '/data' else []
print(json.dumps(found))
"""


@test("H-44: nothing of one run is in the next, be it another conversation's or, but for its home, the same one's", core=True, timeout=120)
def _():
    site = warm.shared()
    client = warm.new_client(site)
    for _ in range(2):
        result, row = warm.run_waiting(site, client, LEAVE)
        equal(result["stdout"], "True\n", result["stderr"])
        same, own = warm.run_next(site, client, FIND)
        equal((same["stdout"], same["stderr"], own), ('["/data/.profile"]\n', "", True))
        other, row = warm.run_waiting(site, warm.new_client(site), FIND)
        check(row, "not a warm container")
        equal((other["stdout"], other["stderr"]), ("[]\n", ""))
        client = warm.new_client(site)


@test("H-44: a conversation's directory is its own: none of the others' can be seen from a warm container")
def _():
    site = warm.shared()
    secret = warm.new_client(site)
    secret.upload("secret", b"mine")
    code = "ls -A /data; find / -xdev -name secret 2>/dev/null; awk '$2 ~ \"^/data\"' /proc/mounts | wc -l"
    result, row = warm.run_waiting(site, warm.new_client(site), code, "bash")
    check(row, "not a warm container")
    equal(result["stdout"], "1\n")


DRAW = """
import json, os, random, secrets, tempfile, time, uuid
numbers = {'random': random.random(), 'hash': hash('x'), 'uuid4': str(uuid.uuid4()), 'uuid1': str(uuid.uuid1()),
           'temp': tempfile.mktemp(), 'token': secrets.token_hex(8), 'urandom': os.urandom(8).hex()}
try:
    import numpy
    numbers['numpy'] = float(numpy.random.rand())
    numbers['generator'] = float(numpy.random.default_rng().random())
except ImportError:
    pass
print(json.dumps({'drawn': numbers, 'time': time.time(), 'monotonic': time.monotonic(), 'used': time.process_time()}))
"""


@test("H-44: seeds differ from run to run, and clocks are right however long a container was warm", timeout=120)
def _():
    site = warm.shared()
    drawn = []
    for _ in range(3):
        start = time.time()
        result, row = warm.run_waiting(site, warm.new_client(site), DRAW)
        check(row, "not a warm container")
        told = json.loads(result["stdout"])
        check(start - 1 < told["time"] < time.time() + 1, f"the clock says {told['time']}, it is {start}")
        check(abs(told["monotonic"] - time.monotonic()) < 10, "the monotonic clock")
        drawn.append(told["drawn"])
    for name in drawn[0]:
        equal(len({one[name] for one in drawn}), len(drawn), f"different values of {name}: {[one[name] for one in drawn]}")


def _shape(container):
    shape = engine.inspect(container)
    shape["HostConfig"].pop("Mounts")
    check(sites.is_sandbox_user(shape["Config"]["User"].split(":")[0]), shape["Config"]["User"])
    return shape["HostConfig"], {name: shape["Config"][name] for name in
                                 ("Env", "Entrypoint", "NetworkDisabled", "OpenStdin", "StdinOnce", "Tty")}


def _cold_shape(code, language):
    site = sites.shared()
    client = warm.new_client(site)
    run_id = runs.begin(client, code, language)

    def running():  # the engine lists a container before it can be asked for it
        return [one["Id"] for one in site.containers() if one["State"] == "running" and one["Labels"]["sandbox.run"] == run_id]
    shape = _shape(wait_until(running, 15, "a container", pause=0.01)[0])
    runs.cancel(client, run_id)
    return shape


@test("H-44: a warm container has the limits and isolation of one that is made for a run")
def _():
    row = pool.wait_for(warm.shared(), language="bash", sandbox="")[0]
    equal(_shape(warm.container_of(warm.shared(), row["runId"])), _cold_shape("sleep 60", "bash"))


@test("libraries are loaded under a higher CPU limit, and the container has a run's limits before it counts as preloaded", timeout=240)
def _():
    address = f"127.0.0.1:{sites.free_port()}"
    updates = engine.Updates()
    site = warm.idle_site("python=1", SANDCGI_METRICS=address)
    row = pool.wait_for(site, seconds=120, language="python", tier="preloaded")[0]
    check(monitoring.read(address)[1]['sandcgi_cpu_seconds_total{purpose="load"}'] > 0.1, "loading is counted")
    container = warm.container_of(site, row["runId"])
    updates.are(2, container)  # the limit was raised, and set back
    equal(_shape(container), _cold_shape("import time; time.sleep(60)", "python"))
    result = warm.new_client(site).run(warm.OWN_LIMITS)
    equal(result["runId"], row["runId"])
    equal(json.loads(result["stdout"]), warm.cold_limits())


@test("a claim while libraries are loaded: the program has a run's limits from its beginning", timeout=300)
def _():
    expected = warm.cold_limits()
    site = warm.idle_site("python=1", SANDBOX_WARM_IDLE="1s")
    for _ in range(4):
        row = pool.wait_for(site, seconds=120, language="python", sandbox="")[0]
        container = warm.container_of(site, row["runId"])

        def loads():
            return (engine.inspect(container)["HostConfig"]["CpuQuota"] == 2000000 or  # noqa: B023
                    pool.waiting(site, "python", "preloaded", ""))
        wait_until(loads, 120, "libraries are being loaded", pause=0)
        result = warm.new_client(site).run(warm.OWN_LIMITS)
        equal((result["status"], json.loads(result["stdout"])), ("ok", expected), result["stderr"])


def _for_crowds():
    return warm.with_settings("python=2,bash=3", SANDCGI_WORKERS="24", SANDBOX_CONVERSATION_RUNS="20", SANDBOX_MAX_RUNS="20")


@test("twenty calls at once on two warm containers: each gets its own answer", timeout=180)
def _():
    site = _for_crowds()
    pool.wait_for(site, 2, language="python")
    clients = [warm.new_client(site) for _ in range(CALLS)]
    results = warm.together([lambda n=n, one=one: one.run(f"open('mine{n}', 'w').close(); import os; print({n}, os.listdir('.'))")
                             for n, one in enumerate(clients)])
    for n, result in enumerate(results):
        check(isinstance(result, dict), f"call {n}: {result!r}")
        equal((result["status"], result["stdout"]), ("ok", f"{n} ['mine{n}']\n"))
    equal(len({result["runId"] for result in results}), CALLS, "different runs")
    wait_until(lambda: not site.containers(), 20, "only warm containers are left")


@test("twenty calls at once in one conversation that is new: one directory, every call answered", timeout=180)
def _():
    site = _for_crowds()
    pool.wait_for(site, 3, language="bash")
    first = warm.new_client(site)

    def call(n):
        one = site.client()
        one.conversation = first.conversation
        return one.run(f"echo {n} >f{n}; echo {n}", "bash")
    for n, result in enumerate(warm.together([lambda n=n: call(n) for n in range(CALLS)])):
        check(isinstance(result, dict), f"call {n}: {result!r}")
        equal(result["stdout"], f"{n}\n")
    equal(first.run("ls | wc -l", "bash")["stdout"], f"{CALLS}\n")
    equal(os.listdir(f"{site.root}/.staging"), [], ".staging")


@test("warm containers that are killed, removed or stopped by hand: every call is answered, the pool fills again", timeout=240)
def _():
    site = warm.site("bash=2")
    for way in ("remove", "kill", "pause"):
        waits = pool.wait_for(site, 2, language="bash", sandbox="")
        for row in waits:
            container = warm.container_of(site, row["runId"])
            if way == "remove":
                engine.remove(container)
            else:
                engine.api("POST", f"/containers/{container}/{way}")
        clients = [warm.new_client(site) for _ in range(3)]
        for result in warm.together([lambda one=one: one.run("echo here", "bash", timeout=3) for one in clients]):
            check(isinstance(result, dict), f"{way}: {result!r}")
            allowed = ("ok", "timeout", "killed") if way == "pause" else ("ok",)
            check(result["status"] in allowed, f"{way}: {result['status']}")
        old = {row["runId"] for row in waits}
        for row in pool.waiting(site, "bash", sandbox=""):  # one that is paused waits for its unpausing, or for the next caller
            if row["runId"] in old:
                engine.remove(warm.container_of(site, row["runId"]))
        wait_until(lambda: len([one for one in pool.waiting(site, "bash", sandbox="") if one["runId"] not in old]) >= 2, 60,  # noqa: B023
                   f"the pool is full again after {way}")
        equal(warm.new_client(site).run("echo again", "bash")["stdout"], "again\n")


def _image(name, language, word):
    engine.build(name, engine.shell_runner(language, f"ENV WORD={word}\n"), new_folder("image"))


@test("an image that is rebuilt or removed under a full pool: no run sees the old one for long, none hangs", timeout=240)
def _():
    language = "warm" + os.urandom(3).hex()
    name = f"runner-{language}"
    at_test_end(engine.remove_image, name)
    _image(name, language, "old")
    site = warm.site(f"{language}=2", SANDBOX_IMAGES=None)
    pool.wait_for(site, 2, language=language)
    equal(warm.new_client(site).run("echo $WORD", language)["stdout"], "old\n")
    _image(name, language, "new")
    wait_until(lambda: warm.new_client(site).run("echo $WORD", language)["stdout"] == "new\n", 60, "runs have the new image", pause=0.5)
    pool.wait_for(site, 2, language=language, sandbox="")
    equal(warm.new_client(site).run("echo $WORD", language)["stdout"], "new\n")
    engine.remove_image(name)

    def is_refused():
        result = warm.new_client(site).run_whole("echo $WORD", language)
        return result.get("isError")
    wait_until(is_refused, 60, "the language is gone", pause=0.5)
    wait_until(lambda: not pool.unclaimed(site), 60, "none of its containers waits")


@test("the engine is killed and restarted under a full pool: every call gets an answer, the pool fills again", alone="kills the engine", timeout=240)
def _():
    site = warm.site("bash=2,python=1")
    old = {one["runId"] for one in pool.wait_for(site, 2, language="bash")}
    answers = []

    def ask():
        start = time.monotonic()
        try:
            answers.append((warm.new_client(site).run("echo out", "bash")["stdout"], time.monotonic() - start))
        except Failed as refused:
            answers.append((str(refused), time.monotonic() - start))
    ask()
    engine.kill()
    try:
        for _ in range(4):
            ask()
    finally:
        engine.start()
    equal(answers[0][0], "out\n")
    for text, seconds in answers:
        check(seconds < 45, f"answered after {seconds:.0f} s: {text}")
    wait_until(lambda: warm.new_client(site).run_whole("echo back", "bash").get("isError") is not True, 45, "runs work again", pause=0.5)
    wait_until(lambda: len([one for one in pool.waiting(site, "bash", sandbox="") if one["runId"] not in old]) >= 2, 90,
               "new containers wait")
    wait_until(lambda: not [one for one in site.all_containers() if one["Labels"]["sandbox.run"] in old], 60,
               "the containers of before are gone")


@test("kill -9 of the broker with a full pool: its containers go, the new broker has its own", timeout=120)
def _():
    site = warm.site("bash=2,python=1")
    old = {one["runId"] for one in pool.wait_for(site, 2, language="bash")}
    victim = site.broker()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not [one for one in site.all_containers() if one["Labels"]["sandbox.run"] in old], 30,
               "the containers of before are gone")
    wait_until(lambda: site.broker() not in (None, victim), 15, "a new broker")
    wait_until(lambda: site.client().request("ping").status == 200, 10, "it serves")
    new = {one["runId"] for one in pool.wait_for(site, 2, language="bash")}
    check(not new & old, f"the same containers: {new & old}")
    equal(warm.new_client(site).run("echo out", "bash")["stdout"], "out\n")


@test("the end of the server, asked for or by force, is the end of its warm containers", timeout=120)
def _():
    site = warm.site("bash=2,python=1")
    pool.wait_for(site, 2, language="bash")
    procs.end(site.process)
    equal(site.all_containers(), [], "containers after TERM")
    equal(os.listdir(f"{site.root}/.pool"), [], ".pool after TERM")
    site.start_server()
    site.wait_healthy()
    pool.wait_for(site, 2, language="bash")
    procs.kill_family(site.process.pid)
    site.process.wait()
    wait_until(lambda: not [one for one in site.all_containers() if one["State"] == "running"], 20, "they have ended by themselves")
    site.start_server()
    site.wait_healthy()
    pool.wait_for(site, 2, language="bash")
    wait_until(lambda: len(site.all_containers()) == len(pool.waiting(site)) == 3, 45, "no containers but those that wait")


@test("SANDBOX_WARM empty, or 0 of everything: nothing is warm, every run starts cold (H-72)")
def _():
    for setting in ("", "python=0,bash=0"):
        site = warm.with_settings(setting)
        equal(warm.new_client(site).run("print(1)")["stdout"], "1\n")
        wait_until(lambda: not site.all_containers(), 10, "the run's container is gone")  # noqa: B023
        holds_for(lambda: not site.all_containers(), 1, "no container waits")  # noqa: B023


@test("a wrong SANDBOX_WARM or SANDBOX_WARM_MEMORY stops the start with one line that names it")
def _():
    for name, value in (("SANDBOX_WARM", "python"), ("SANDBOX_WARM", "python=many"), ("SANDBOX_WARM", "python=1,python=2"),
                        ("SANDBOX_WARM_MEMORY", "lots"), ("SANDBOX_WARM_MEMORY", "150%")):
        site = sites.own({name: value}, start=False)
        status = site.start_server().wait(60)
        check(status != 0, f"{name}={value} was taken")
        lines = site.log().strip().splitlines()
        equal(len(lines), 1, f"{name}={value}: {lines}")
        contains(lines[0], name)


@test("warm containers stay within SANDBOX_WARM_MEMORY", timeout=120)
def _():
    site = warm.with_settings("bash=8", SANDBOX_WARM_MEMORY="128m")
    pool.wait_for(site, 3, language="bash")

    def fits():
        known = pool.status(site)["pool"]
        each = [one["memoryBytes"] for one in known["waiting"]]
        return sum(each) <= known["budgetBytes"] == 128 << 20 and min(each, default=8 << 20) >= 8 << 20
    holds_for(fits, 2, "what waits fits")
    holds_for(lambda: len(site.all_containers()) <= 7, 1, "with Python's template one has more than 16 MB")
    clients = [warm.new_client(site) for _ in range(6)]
    for one in clients:
        equal(one.run("echo out", "bash")["stdout"], "out\n")
    wait_until(lambda: not site.containers(), 15, "runs' containers are gone")
    holds_for(fits, 2, "what waits fits, for known conversations, too")


@test("a full warm pool uses next to no CPU", timeout=180)
def _():
    site = warm.idle_site()
    pool.wait_for_all(site, 120, ("python",))  # no container is being made, whose figures could not be read
    preloaded, started = pool.waiting(site, tier="preloaded")[0], pool.waiting(site, tier="started")[0]
    check(9 << 20 < started["memoryBytes"] < 40 << 20 < preloaded["memoryBytes"] < 200 << 20, f"memory of {started} and {preloaded}")

    def used():
        return sum(warm.cpu_ns(one["Id"]) for one in site.all_containers())

    def quiet():  # the best of several spells: on a busy machine containers of the start may come late
        names = {one["Id"] for one in site.all_containers()}
        before = used()
        time.sleep(5)
        return used() - before < 50e6 and names == {one["Id"] for one in site.all_containers()} and len(names) >= 4
    wait_until(quiet, 150, "five seconds in which four containers or more together use less than 50 ms")


FLOODS = (("python", "import os, sys\nsys.stdout.write('x' * (1 << 20))\n"),
          ("python", "import os\nos.write(1, b'x' * (1 << 19)); os.write(1, b'x' * (1 << 19))\nos._exit(0)\n"),
          ("typescript", "process.stdout.write('x'.repeat(1 << 20));\n"),
          ("bash", "head -c 1048576 /dev/zero | tr '\\0' x\n"))


@test(f"{OUTPUTS} programs that print a megabyte and exit at once, four at a time: every byte arrives", timeout=120 + OUTPUTS)
def _():
    site = warm.shared()
    pool.wait_for(site, 2, language="python")

    def lane(first):
        client = site.client()
        for n in range(first, OUTPUTS, 4):
            language, code = FLOODS[n // 4 % len(FLOODS)]
            result = sites.new_conversation(client).run(code, language)
            equal((n, language, result["status"], result["truncation"]["stdout"]["total"]), (n, language, "ok", MEGABYTE))
            check(set(result["stdout"].split("\n", 1)[0]) == {"x"}, f"run {n}: other bytes")
        return True
    for problem in warm.together([lambda n=n: lane(n) for n in range(4)]):
        check(problem is True, f"{problem}")


@test("SANDBOX_HOST_PATH: warm containers, too, have the directory under the engine's name for it")
def _():
    if not IS_ROOT:
        raise Skip("only root can mount")
    real = new_folder("real")
    site = sites.own({"SANDBOX_HOST_PATH": real, "SANDBOX_WARM": "bash=1"}, start=False)
    done = subprocess.run(["mount", "--bind", real, site.root], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"mount --bind: {done.stderr.strip()}")
    at_test_end(subprocess.run, ["umount", "-l", site.root])
    site.start()
    client = warm.new_client(site)
    result, row = warm.run_waiting(site, client, "echo through >out.txt", "bash")
    check(row, "not a warm container")
    equal(client.download(result["files"][0]["url"]).body, b"through\n")

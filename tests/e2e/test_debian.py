"""The Debian package: built, installed in a root of its own, started as its units say, upgraded, removed, purged."""
import os
import re
import shutil
import subprocess
import urllib.parse

import debian_root
import engine
import rights
import runs
from harness import at_test_end, check, contains, equal, test, wait_until
from mcp import end_run

EXPOSURE_MAX = 4.0  # of "systemd-analyze security"; 10 is a service without limits


@test("the Debian package builds, and lintian has neither errors nor warnings", timeout=1200)
def _():
    changes = re.sub(r"\.deb$", ".changes", debian_root.package())  # a release: that of a later commit has another name
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", changes], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout), (0, ""), "lintian")


@test("installed from the package, settings and secrets are there, each its own, and readable for whom they must be", timeout=120)
def _():
    root = debian_root.installed()
    equal(root.mode_of("/etc/sandcgi/sandcgi.conf"), "0600 0 root")
    equal(root.mode_of("/var/lib/sandcgi/front-secret"), "0600 0 root")
    equal(root.mode_of("/var/lib/sandcgi"), "0711 0 root")
    found = [root.setting("FILE_SECRET"), root.setting("MCP_API_TOKEN")]
    check(all(re.fullmatch("[0-9a-f]{64}", one) for one in found) and len(set(found)) == 2, "secrets")
    root.run("sandcgi", "check", "--config", debian_root.CONFIG)
    equal(root.run("sandcgi", "version"), f"sandcgi {debian_root.RELEASE}\n")
    if shutil.which("npm"):  # at the package's build
        check(os.path.exists(f"{root.folder}/usr/share/sandcgi/page/index.html"), "the page is not in the package")
    links = os.listdir(f"{root.folder}/etc/systemd/system/sockets.target.wants")
    check({"sandcgi.socket", "sandcgi-hub.socket"} <= set(links), f"enabled: {links}")


@test("systemd accepts the units, and finds the service confined")
def _():
    units = debian_root.installed().units_for_verify()
    equal(len(units), 7, "units")
    done = subprocess.run(["systemd-analyze", "--man=no", "--recursive-errors=one", "verify", *units], capture_output=True, text=True, check=False)
    equal([line for line in done.stderr.splitlines() if "sandcgi" in line], [], "systemd-analyze verify")
    equal(done.returncode, 0, "systemd-analyze verify")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", units[[os.path.basename(one) for one in units].index("sandcgi.service")]],
                          capture_output=True, text=True, check=False)
    score = float(re.search(r"exposure level for sandcgi.service: ([0-9.]+)", done.stdout).group(1))
    check(score <= EXPOSURE_MAX, f"systemd-analyze security: {score}")


@test("started as its units say, with their sockets and rights alone, the service runs programs behind an nginx", timeout=120)
def _():
    root = debian_root.running()
    client = root.client()
    result = client.run("echo 42 >answer.txt; cat answer.txt", "bash")
    equal(result["stdout"], "42\n")
    equal(client.download(result["files"][0]["url"]).body, b"42\n")
    link = urllib.parse.urlsplit(client.structured("create_upload", {"conversationId": client.conversation, "filename": "up.bin"})["url"])
    for status, body in ((201, b"u" * 300_000), (410, b"again")):
        equal(client.http("PUT", f"{link.path}?{link.query}", body).status, status, "an upload by its link")
    equal(client.run("wc -c <up.bin", "bash")["stdout"], "300000\n")
    log = root.log()
    contains(log, "using the socket fastcgi that was handed over")
    contains(log, "using the socket hub that was handed over")
    contains(root.run("sandcgi", "status", "--config", debian_root.CONFIG), "python")


@test("no file of the package's, or of an nginx that it was put into, with a secret is readable for the workers' account, nginx's or another")
def _():
    root = debian_root.running()
    secrets = [root.setting("FILE_SECRET"), root.setting("MCP_API_TOKEN"), root.run("cat", "/var/lib/sandcgi/front-secret").strip(),
               rights.key_of(root.run("cat", "/etc/nginx/sandcgi/file-key.conf"))]
    rights.check_closed(lambda words: root.run(*words), ("sandcgi", "www-data", "nobody"), secrets, ("/etc", "/run/sandcgi", "/var/lib", "/var/log", "/usr/share/sandcgi", "/tmp"), 5)


@test("reload, restart and stop work in the service; a reload that is refused says why, and the service goes on", timeout=120)
def _():
    root = debian_root.running()
    client, config = root.client(), root.folder + debian_root.CONFIG
    with open(config, "a", encoding="utf-8") as file:
        before = file.tell()
        file.write("SANDBOX_NETWORK=perhaps\n")
    try:
        refused = root.fails(*root.unit("sandcgi.service")["Service"]["ExecReload"].split())
        contains(refused, "SANDBOX_NETWORK")
        equal(root.fails("sandcgi", "reload"), refused, "the command alone says the same")
        contains(root.fails("sandcgi", "restart"), "SANDBOX_NETWORK")
        equal(client.fresh().request("ping").status, 200, "a call after the refusals")
    finally:
        os.truncate(config, before)
    contains(root.log(), "audit=reload-refused")
    contains(root.run("sandcgi", "reload"), "reloaded\n")
    contains(root.run("sandcgi", "restart"), "restarted\n")
    wait_until(lambda: client.fresh().http("GET", "/healthz").status == 200, 20, "it serves after the restart")
    equal(root.run("sandcgi", "stop"), "stopped\n")
    equal(root.process.wait(20), 0, "the service's exit status")
    contains(root.fails("sandcgi", "reload"), "no server of /etc/sandcgi/sandcgi.conf runs")
    root.start()
    wait_until(lambda: client.fresh().http("GET", "/healthz").status == 200, 20, "it serves again")


@test("the installed builder makes and proves an image without a compiler", timeout=180)
def _():
    root = debian_root.installed()
    check(not os.path.exists(f"{root.folder}/usr/bin/cc"), "there is a compiler")
    at_test_end(engine.remove_image, f"{debian_root.BUILT}workbench")
    contains(root.build_images("bash"), "bash: prove")
    contains(root.build_images("bash"), "up to date")


@test("the package's images have the stamp that those of a clone have")
def _():
    words = "runners/build.sh", "--fingerprint"
    in_clone = subprocess.run(words, cwd=f"{os.path.dirname(debian_root.package())}/sandcgi", capture_output=True, text=True, check=True).stdout
    equal(debian_root.installed().run(f"/usr/libexec/sandcgi/{words[0]}", words[1]), in_clone)


@test("the package of a commit behind a release is an upgrade: apt installs it, the new program takes over; that and a restart lose no run", timeout=1200)
def _():
    root = debian_root.running()
    client = root.client()
    newer = debian_root.newer_package()
    version = re.search(r"_(.*)_", os.path.basename(newer)).group(1)
    check(re.fullmatch(rf"{re.escape(debian_root.RELEASE)}\+\d{{8}}T\d{{6}}\.\d+\.g[0-9a-f]{{10}}", version), version)
    waiting = root.client().begin_run("sleep 3; echo over", "bash", conversation=client.conversation)
    in_background = runs.begin(client, "sleep 5; echo later", timeout=20)
    root.install(newer)
    equal(root.run("dpkg-query", "-W", "-f", "${Version}", "sandcgi"), version)
    check(root.program().endswith(" (deleted)"), f"{root.program()} is running before the reload")
    root.reload()
    wait_until(lambda: root.program() == "/usr/bin/sandcgi", 20, "the new program has taken over")
    wait_until(lambda: f"version {version}, " in root.run("sandcgi", "status", "--config", debian_root.CONFIG), 30, "the new version answers")
    equal(root.run("sandcgi", "version"), f"sandcgi {version}\n")
    for _ in range(10):
        equal(client.fresh().request("ping").status, 200, "a call after the reload")
    result, status = end_run(waiting, 20)
    equal((status, result["stdout"]), (200, "over\n"), "the run that was waited for")
    again = runs.begin(client, "sleep 4; echo last", timeout=20)
    root.stop()
    root.start()
    for run_id, text in ((in_background, "later\n"), (again, "last\n")):
        found = wait_until(lambda one=run_id: runs.look(client, one).get("stdout"), 20, f"the result of {run_id}", pause=0.5)
        equal(found, text)


@test("removed, the package leaves settings and conversations; purged, nothing, and an nginx that includes its files starts", timeout=120)
def _():
    root = debian_root.running()
    root.stop()
    root.nginx.terminate()
    root.nginx.wait(20)
    root.run("dpkg", "--remove", "sandcgi")
    check(not os.path.exists(f"{root.folder}/usr/bin/sandcgi"), "the program is still there")
    check(os.path.exists(root.folder + debian_root.CONFIG), "the settings are gone")
    check(len(os.listdir(f"{root.folder}/var/lib/sandcgi/sandboxes")) > 1, "the conversations are gone")
    root.run("dpkg", "--purge", "sandcgi")
    left = sorted(name for name in root.names() - root.before if not name.startswith(("/etc/nginx/", "/var/lib/nginx/")))
    equal(left, [], "left after the purge")
    check("sandcgi" not in root.run("cat", "/etc/passwd", "/etc/group"), "the account is still there")
    root.run("nginx", "-t")
    equal(sorted(os.listdir(f"{root.folder}/etc/nginx/sandcgi")), ["http.conf", "server.conf"], "what nginx includes, without tokens")

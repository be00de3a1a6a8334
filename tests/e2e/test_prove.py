"""sandcgi prove: which walls hold on this machine, as programs find them."""
import glob
import json
import os
import re
import subprocess

import network
import sites
from harness import IS_ROOT, check, contains, equal, new_folder, test, wait_until
from proxy import Proxy

LINE = re.compile(r"(holds|untried|missing) +([a-z-]+) +(\S.*)")
PROGRAMS = {"rights", "namespaces", "engine-filter", "calls", "files", "entry", "memory", "processes", "time", "no-network"}


def _prove(site, *words):
    """(exit status, {wall: state}, output, errors)."""
    done = subprocess.run([site.binary, "prove", *words, "--config", site.config], env=site.tool_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=100, check=False)
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()[:-1]]
    check(all(found), done.stdout)
    return done.returncode, {one.group(2): one.group(1) for one in found}, done.stdout, done.stderr


def _status(site):
    done = subprocess.run([site.binary, "status", "--json", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _server(**settings):
    """A server of the module whose engine's limits have been tried."""
    site = sites.with_settings(SANDBOX_LIMITS_CHECK="warn", SANDBOX_MEMORY="64m", **settings)
    wait_until(lambda: _status(site)["limits"]["hold"], 30, "limits are tried")
    return site


def _content(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def _machine_lacks():
    """Walls that a server with Docker cannot give here."""
    lacks = {"quotas"}  # the tests' folder has none
    if any(_content(one).startswith("Vulnerable") for one in glob.glob("/sys/devices/system/cpu/vulnerabilities/*")):
        lacks.add("processor")
    apparmor = "/sys/module/apparmor/parameters/enabled"
    if not os.path.exists(apparmor) or _content(apparmor).strip() != "Y":
        lacks.add("lsm")
    return lacks if IS_ROOT else lacks | {"users"}


@test("sandcgi prove: with Docker each wall holds that this machine can have, and nothing of the programs is left (H-12, H-73)", timeout=120)
def _():
    site = _server()
    status, walls, out, errors = _prove(site)
    equal(errors, "")
    check(PROGRAMS <= set(walls), out)
    equal({name for name, state in walls.items() if state == "missing"}, _machine_lacks(), out)
    equal([name for name, state in walls.items() if state == "untried"], [], out)
    equal((status, out.splitlines()[-1]), (1, f"{len(_machine_lacks())} missing, 0 could not be tried"))
    check("isolated" not in out, out)
    equal(_status(site)["disk"]["conversations"], 0, "conversations that are left")
    equal(glob.glob(f"{site.root}/" + "[0-9a-f]" * 8 + "*"), [], "directories that are left")


@test("sandcgi prove: settings that weaken are missing walls, what was not tried is no wall, and --quiet tells them alone", timeout=120)
def _():
    network.rules()
    site = sites.with_settings(SANDBOX_LIMITS_CHECK="trust", SANDBOX_USER="1234567:1234567" if IS_ROOT else "auto", SANDBOX_NETWORK="lan")
    wait_until(lambda: "lastError" not in _status(site)["network"], 30, "the network is tested")
    status, walls, out, _errors = _prove(site, "--quiet")
    equal(status, 1)
    equal({name: state for name, state in walls.items() if name == "users" or name not in _machine_lacks()}, {"users": "missing", "network": "missing", "near": "missing", "limits": "untried"}, out)
    contains(out, "SANDBOX_NETWORK=lan leads to this machine")


@test("sandcgi prove: with SANDBOX_NETWORK=public a program reaches nothing that is near (H-13)", timeout=120)
def _():
    site = network.site()
    wait_until(lambda: "lastError" not in _status(site)["network"], 30, "the network is tested")
    _status_, walls, out, _errors = _prove(site)
    equal((walls["network"], walls["near"]), ("holds", "holds"), out)


# What an engine ignores, if the name of the member is another one: the wall that is missing then.
IGNORED = {b'"CapDrop"': "rights", b'"Memory': "memory", b'"PidsLimit"': "processes", b'"ReadonlyRootfs"': "files"}


def _ignore(data):
    for name in IGNORED:
        data = data.replace(name, name[:1] + b"X" + name[2:])
    return data


@test("sandcgi prove: of an engine that ignores capabilities, limits and the read-only root the programs find each hole (H-12, H-38)", timeout=120)
def _():
    relay = Proxy(f"{new_folder('engine')}/engine.sock", change=_ignore).start()
    site = sites.own({"DOCKER_HOST": f"unix://{relay.address}", "SANDBOX_MEMORY": "64m"})
    status, walls, out, _errors = _prove(site)
    equal((status, {name for name, state in walls.items() if state == "missing"}), (1, _machine_lacks() | set(IGNORED.values())), out)


@test("sandcgi prove: without a server, an engine or an image nothing could be tried")
def _():
    site = sites.own({"SANDBOX_IMAGES": "no-such-image"})
    _status_, walls, out, _errors = _prove(site)
    equal({walls[name] for name in PROGRAMS}, {"untried"}, out)
    site.stop()
    done = subprocess.run([site.binary, "prove", "--config", site.config], env=site.tool_environment(), capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
    contains(done.stderr, "nothing could be tried: the server does not answer")

"""Networks of containers: servers that give them one, and hosts in a network namespace of the tests' own."""
import fcntl
import functools
import json
import shutil
import subprocess
import sys

import engine
import procs
import sites
from harness import IS_ROOT, TOP, Skip, at_module_end, wait_until

RULES = f"{TOP}/nginx/setup/network.sh"
LINK = ("sandcgi-e2e-a", "sandcgi-e2e-b")  # of the machine, of the namespace
SPACE = "sandcgi-e2e"
LOCK = "/tmp/sandcgi-e2e-network.lock"  # the addresses are those of one process of tests at a time
INTERNET, LAN = "45.45.45.45", "192.168.77.7"
INTERNET6, LAN6 = "2a0f:4545::45", "fd77:77::7"
# Hosts that "public" must not reach, all of them in the namespace.
NEAR = (LAN, "10.254.77.7", "172.30.77.7", "169.254.169.254", "100.100.100.200", "168.63.129.16", "198.51.100.7")
HOST, HOST6 = "45.45.46.46", "2a0f:4546::46"  # public addresses of this machine itself
ROUTER, ROUTER6 = "198.18.250.1", "fd77:250::1"

SERVER = """
import socket, sys, threading
def tcp():
    s = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True, backlog=50)
    while True:
        c, _ = s.accept()
        try:
            c.sendall(b"hello")
        except OSError:
            pass
        c.close()
threading.Thread(target=tcp, daemon=True).start()
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
s.bind(("::", int(sys.argv[1])))
while True:
    _, called, _, caller = s.recvmsg(9, 200)
    s.sendmsg([b"hello"], called, 0, caller) # from the address that was called
"""

# Prints {target: [what came by TCP, by UDP]}; targets are [address, port].
PROBE = """
import concurrent.futures, errno, json, socket
def tcp(to):
    try:
        with socket.create_connection(to, 4) as s:
            return s.recv(9).decode()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
def udp(to):
    with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        try:
            s.connect(to)
            s.send(b"x")
            return s.recv(9).decode()
        except OSError as e:
            return errno.errorcode.get(e.errno, str(e))
TARGETS = %s
with concurrent.futures.ThreadPoolExecutor(40) as pool:
    both = list(pool.map(lambda to: [tcp(tuple(to)), udp(tuple(to))], TARGETS))
print(json.dumps({to[0]: words for to, words in zip(TARGETS, both)}))
"""


@functools.cache
def rules():
    """The firewall rules of start.sh."""
    if not IS_ROOT or not shutil.which("nft"):
        raise Skip("the firewall rules need root and nft")
    engine.socket_path()
    subprocess.run([RULES, "install"], check=True)


def settings(**more):
    """Those of a server whose programs may have a network."""
    rules()
    return {"SANDBOX_NETWORK": "public"} | more


def site(**more):
    return sites.with_settings(**settings(**more))


def _ip(*words):
    subprocess.run(["ip", *words], check=True)


def _serve(prefix, port):
    process = subprocess.Popen([*sites.DIE_WITH_US, *prefix, sys.executable, "-c", SERVER, str(port)])
    at_module_end(procs.end, process)


def _whole(address):
    return f"{address}/{128 if ':' in address else 32}"


def _address(address, *where):
    _ip("addr", "add", _whole(address), *where, *(("nodad",) if ":" in address else ()))


def _remove_hosts():
    """Also those of a process that was killed."""
    for words in (("netns", "del", SPACE), ("link", "del", LINK[0]), *(("addr", "del", _whole(address), "dev", "lo") for address in (HOST, HOST6))):
        subprocess.run(["ip", *words], check=False, capture_output=True)


_of_module = {}  # the lock that is held, the port of the hosts that are there


def _lock():
    """Held until the tests of the module have ended."""
    if "lock" not in _of_module:
        file = _of_module["lock"] = open(LOCK, "w", encoding="ascii")  # pylint: disable=consider-using-with
        at_module_end(_of_module.clear)
        at_module_end(file.close)
    wait_until(lambda: _is_locked(_of_module["lock"]), 60, "no other process of tests has these addresses", 0.5)


def _is_locked(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def hosts():
    """Hosts that answer "hello" on the port that is returned, until the tests of the module have ended: in the namespace, and this machine."""
    if "port" not in _of_module:
        rules()
        _lock()
        port = sites.free_port()
        _make_hosts(port)
        _of_module["port"] = port
    return _of_module["port"]


def _make_hosts(port):
    ours, theirs = LINK
    _remove_hosts()
    at_module_end(_remove_hosts)
    _ip("netns", "add", SPACE)
    _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", SPACE)
    inside = ("-n", SPACE)
    for address in (ROUTER, ROUTER6):
        _address(address, "dev", ours)
    _ip("link", "set", ours, "up")
    for link in ("lo", theirs):
        _ip(*inside, "link", "set", link, "up")
    for address in (INTERNET, INTERNET6, LAN6, *NEAR):
        _ip(*inside, "addr", "add", _whole(address), "dev", theirs, *(("nodad",) if ":" in address else ()))
        _ip("-6" if ":" in address else "-4", "route", "replace", address, "dev", ours)
    for family, router in (("-4", ROUTER), ("-6", ROUTER6)):
        _ip(*inside, family, "route", "add", router, "dev", theirs)
        _ip(*inside, family, "route", "add", "default", "via", router, "dev", theirs)
    for address in (HOST, HOST6):
        _address(address, "dev", "lo")
    _serve(("ip", "netns", "exec", SPACE), port)
    _serve((), port)


def probe(targets):
    """A Python program that prints what it reaches of them, as JSON."""
    return PROBE % json.dumps([list(to) for to in targets])


def gateway(of="sandcgi-public"):
    """The engine's host as containers on the network see it."""
    return engine.api("GET", f"/networks/{of}")["IPAM"]["Config"][0]["Gateway"]


def replace(body):
    """Has the engine make the public network anew, with these members; the server makes it as it should be after remove()."""
    def made():
        remove()
        return engine.api("POST", "/networks/create", {"Name": "sandcgi-public", "Driver": "bridge", "CheckDuplicate": True} | body, ok=None)
    wait_until(lambda: "Id" in (made() or {}), 30, "the network is made")


def remove():
    """Without containers on it the engine removes it; the next one that needs it has it made again."""
    def gone():
        engine.api("DELETE", "/networks/sandcgi-public", ok=None)
        return "Id" not in engine.api("GET", "/networks/sandcgi-public", ok=None)
    wait_until(gone, 30, "the network is gone")

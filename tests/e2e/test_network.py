"""Network tiers: what programs reach from "public" and "lan", and when they get no network."""
import json
import subprocess

import engine
import network
import sites
from harness import at_test_end, check, contains, equal, test, wait_until
from mcp import ToolError

REFUSALS = ("EHOSTUNREACH", "ENETUNREACH", "EACCES", "timed out")
SERVE = "nohup python3 -m http.server 8000 >/dev/null 2>&1 &"
FORWARDING = "net.ipv6.conf.all.forwarding"
OWN_ADDRESS = "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('8.8.8.8', 9)); print(s.getsockname()[0])\""

# Each prints "hello" when a server at "localhost" answers its own program.
LISTENING = {
    "python": """
import http.server, threading, urllib.request
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("localhost", 0), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/", timeout=5).read().decode())
""",
    "typescript": """
import http from "node:http";
const server = http.createServer((_, answer) => answer.end("hello")).listen(0, "localhost", async () => {
  console.log(await (await fetch(`http://localhost:${server.address().port}/`)).text());
  process.exit(0);
});
""",
}
ADDRESSES = 'import socket\nprint(*sorted({row[4][0] for row in socket.getaddrinfo("localhost", 80)}))'


def _has_network(client):
    """Its first call starts the test of the tier, which is repeated while it does not pass."""
    try:
        client.run("pass", network=True)
        return True
    except ToolError as refused:
        contains(refused.text, "not available on this server")
        return False


def _reached(client, targets, **more):
    wait_until(lambda: _has_network(client), 40, "the network has passed its test", pause=1)
    result = client.run(network.probe(targets), network=True, **more)
    equal(result["status"], "ok", result["stderr"])
    return json.loads(result["stdout"])


def _check_public(reached):
    """Of all that the probe has tried, only the internet answered."""
    equal(reached.pop(network.INTERNET), ["hello", "hello"])
    for address, words in reached.items():
        check(all(word in REFUSALS for word in words), f"{address}: {words}")


def _everything():
    port = network.hosts()
    near = [*network.NEAR, network.HOST, network.gateway(), engine.api("GET", "/networks/bridge")["IPAM"]["Config"][0]["Gateway"]]
    return [(address, port) for address in (network.INTERNET, *near)]


def _sandbox(client, **more):
    return client.structured("create_sandbox", {"conversationId": client.conversation, "language": "python", "network": True} | more)["sandboxId"]


def _exec(client, sandbox, command):
    result = client.structured("exec", {"sandboxId": sandbox, "commands": [command]})
    check(result["success"], result)
    return result["results"][-1]["stdout"].strip()


def _close(client, sandbox):
    client.structured("close_sandbox", {"sandboxId": sandbox})


def _check_localhost(client, network):
    for language, code in LISTENING.items():
        result = client.run(code, language, network=network)
        equal(result["stdout"], "hello\n", f"{language}: {result['stderr']}")
    equal(client.run(ADDRESSES, network=network)["stdout"], "127.0.0.1 ::1\n")
    sandbox = _sandbox(client, network=network)
    client.structured("write_file", {"conversationId": client.conversation, "filename": "server.ts", "text": LISTENING["typescript"]})
    equal(_exec(client, sandbox, "bun run server.ts; python3 -c 'import socket; print(socket.gethostbyname(\"localhost\"))'"), "hello\n127.0.0.1")
    _close(client, sandbox)


@test("a program without a network that listens at localhost answers itself there, in each language and in a persistent sandbox", core=True)
def _():
    _check_localhost(sites.new_conversation(sites.client()), False)


@test("a program with a network that listens at localhost answers itself there, too", timeout=120)
def _():
    client = sites.new_conversation(network.site().client())
    wait_until(lambda: _has_network(client), 40, "the network has passed its test", pause=1)
    _check_localhost(client, True)


@test("network: true reaches the internet, and neither private addresses, metadata services nor this machine (H-13)", core=True, timeout=120)
def _():
    client = sites.new_conversation(network.site().client())
    client.run("pass", network=True)  # makes the network
    _check_public(_reached(client, _everything()))


@test("a tenant's server in a persistent sandbox answers itself, and no other tenant's program or sandbox (H-13)", timeout=180)
def _():
    site = network.site()
    alice, dave = site.client_of("alice"), site.client_of("dave")
    hers, his = _sandbox(alice), _sandbox(dave)
    try:
        address = _exec(alice, hers, f"{SERVE} {OWN_ADDRESS}")
        own = f"python3 -c \"import urllib.request as u; print(u.urlopen('http://{address}:8000').status)\""
        wait_until(lambda: _exec(alice, hers, own + " || true") == "200", 20, "her server answers her")
        client = sites.new_conversation(dave, "dave")
        reached = _reached(client, [(address, 8000)])
        check(all(word in REFUSALS for word in reached[address]), reached)
        dave.structured("write_file", {"conversationId": client.conversation, "filename": "probe.py",
                                       "text": network.probe([(address, 8000), *_everything()])})
        _close(dave, his)
        his = _sandbox(client)
        _check_public(json.loads(_exec(client, his, "python3 probe.py")))
    finally:
        for client, sandbox in ((alice, hers), (dave, his)):
            client.tool("close_sandbox", {"sandboxId": sandbox})


LAN = {"SANDBOX_NETWORK": "lan", "nginx": {"NETWORKS": "dave=none alice=public"}}


@test("SANDBOX_NETWORK=lan reaches what this machine reaches, and no other container", timeout=180)
def _():
    port = network.hosts()
    site = network.site(**LAN)
    alice, dave = site.client_of("ann"), site.client_of("dan")
    hers = _sandbox(alice)
    try:
        address = _exec(alice, hers, f"{SERVE} {OWN_ADDRESS}")
        wait_until(lambda: "refused" not in _exec(alice, hers, f"(echo >/dev/tcp/{address}/8000) 2>&1 || true"), 20, "her server listens")
        reached = _reached(dave, [(address, 8000), (network.INTERNET, port), (network.LAN, port), (network.HOST, port)])
        check(all(word in REFUSALS for word in reached.pop(address)), "another container is reached")
        equal(reached, {a: ["hello", "hello"] for a in (network.INTERNET, network.LAN, network.HOST)})
    finally:
        _close(alice, hers)


@test("NETWORKS lowers the network of a tenant, whatever SANDBOX_NETWORK allows to others", timeout=120)
def _():
    port = network.hosts()
    site = network.site(**LAN)
    alice, dave, other = site.client_of("alice"), site.client_of("dave"), sites.new_conversation(site.client())
    targets = [(network.INTERNET, port), (network.LAN, port)]
    equal(_reached(other, targets), {a: ["hello", "hello"] for a, _ in targets})
    _check_public(_reached(alice, targets))
    contains(dave.run_error("print(1)", network=True), "allows no network")
    for client, shown in ((other, True), (dave, False), (alice, True)):
        rows = {row["name"]: row["inputSchema"].get("properties", {}) for row in client.result("tools/list")["tools"]}
        equal({name for name, properties in rows.items() if "network" in properties}, {"run_code", "create_sandbox"} if shown else set())
    contains(dave.tool_error("create_sandbox", {"conversationId": dave.conversation, "language": "bash", "network": True}), "allows no network")


@test("IPv6: the internet, and no unique local, link-local or own address", alone="makes the engine's public network anew, and the machine forward IPv6", timeout=180)
def _():
    port = network.hosts()
    forwarding = subprocess.run(["sysctl", "-n", FORWARDING], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["sysctl", "-qw", f"{FORWARDING}=1"], check=True)
    at_test_end(subprocess.run, ["sysctl", "-qw", f"{FORWARDING}={forwarding}"])
    at_test_end(network.remove)
    network.replace({"EnableIPv6": True, "IPAM": {"Config": [{"Subnet": "2a0f:4547::/64", "Gateway": "2a0f:4547::1"}]},
                     "Options": {"com.docker.network.bridge.name": "sgpub-six", "com.docker.network.bridge.enable_icc": "false"}})
    site = sites.own(network.settings())
    client = sites.new_conversation(site.client())
    targets = [(a, port) for a in (network.INTERNET6, network.LAN6, network.ROUTER6, network.HOST6, "2a0f:4547::1")]
    reached = _reached(client, targets)
    equal(reached.pop(network.INTERNET6), ["hello", "hello"])
    for address, words in reached.items():
        check(all(word in REFUSALS for word in words), f"{address}: {words}")
    other = _sandbox(client)
    try:
        address = _exec(client, other, SERVE.replace("http.server 8000", "http.server 8000 --bind ::") + " python3 -c \"import socket; "
                        "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); "
                        "s.connect(('2a00::1', 9)); print(s.getsockname()[0])\"")
        words = _reached(client, [(address, 8000)])[address]
        check(all(word in REFUSALS for word in words), f"another container: {words}")
    finally:
        _close(client, other)


@test("without the firewall rules on its bridge no program gets the network; one log line, status and the error say so", alone="makes the engine's public network anew", timeout=120)
def _():
    at_test_end(network.remove)
    network.replace({})  # with the engine's choice of a bridge, which the rules do not know
    site = sites.own(network.settings())
    client = sites.new_conversation(site.client())
    contains(client.run_error("print(1)", network=True), "network: not available on this server: ")
    contains(client.tool_error("create_sandbox", {"conversationId": client.conversation, "language": "bash", "network": True}), "not available")
    equal(client.run("print(1)")["stdout"], "1\n")
    lines = [line for line in site.log().splitlines() if " warn " in line and "network public: refused" in line]
    equal(len(lines), 1, site.log()[-1500:])
    contains(lines[0], "nginx/setup/network.sh")
    status = subprocess.run([site.binary, "status", "--config", site.config], capture_output=True, text=True, check=True).stdout
    contains(status, "network  public: refused")

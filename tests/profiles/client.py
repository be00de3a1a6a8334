"""What the recorded clients have in common: the plainest MCP client there can be, over HTTP or over standard input and output.

  NAME.py http URL TOKEN          one POST per message, no session
  NAME.py stdio COMMAND [WORD…]   one line per message

It knows nothing of the server at the other end but what its own server's users know: names, arguments, shapes, codes.
"""
import json
import ssl
import subprocess
import sys
import urllib.request


class Http:
    def __init__(self, url, token):
        self.url, self.token = url, token
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def raw(self, body, token=None):
        """(status, text) of a POST."""
        request = urllib.request.Request(self.url, body, {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token or self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=120, context=self.context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def exchange(self, message):
        _, text = self.raw(json.dumps(message).encode())
        if text.startswith(("event:", "data:", ":", "id:")):
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
            return next(m for m in map(json.loads, lines) if m.get("id") == message.get("id"))
        return json.loads(text) if text else None


class Stdio:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with

    def exchange(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while "id" in message:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == message["id"] and "method" not in answer:
                return answer
        return None


class Client:
    def __init__(self, transport):
        self.transport, self.id, self.checks = transport, 0, 0

    @property
    def over_http(self):
        return isinstance(self.transport, Http)

    def request(self, method, params=None):
        """The whole answer."""
        self.id += 1
        return self.transport.exchange({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params or {}})

    def initialize(self, revision):
        answer = self.request("initialize", {"protocolVersion": revision, "capabilities": {},
                                             "clientInfo": {"name": "recorded", "version": "1"}})["result"]
        self.equal(answer["protocolVersion"], revision)
        self.transport.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tools(self):
        return self.request("tools/list")["result"]["tools"]

    def call(self, tool, /, **arguments):
        """The result of a call, which no error may answer."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        self.check("result" in answer, f"{tool}: {answer}")
        return answer["result"]

    def text(self, tool, /, **arguments):
        """The text of a result's only block."""
        result = self.call(tool, **arguments)
        self.equal([block["type"] for block in result["content"]], ["text"])
        self.check(not result.get("isError"), f"{tool}: isError")
        return result["content"][0]["text"]

    def check(self, condition, what):
        self.checks += 1
        if not condition:
            sys.exit(f"{sys.argv[0]}: {what}")

    def equal(self, got, want):
        self.check(got == want, f"got {got!r}, want {want!r}")

    def contains(self, text, part):
        self.check(part in text, f"{text!r} does not contain {part!r}")


def main(script):
    kind, *rest = sys.argv[1:]
    client = Client(Http(*rest) if kind == "http" else Stdio(rest))
    script(client)
    print(f"{client.checks} checks")

"""run_code over /mcp: of a server of ours through nginx with TLS and bearer token, or of any other MCP server by its URL."""
import json
import secrets
import time
import urllib.parse

from http1 import Connection, request

VERSION = "2025-06-18"


class Target:
    """Where a server is and who we are there."""

    def __init__(self, url, token, ca=None):
        parts = urllib.parse.urlsplit(url)
        self.address = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.rstrip("/") or "/mcp/api"
        self.token = token
        self.ca = ca
        self.session = None

    @classmethod
    def of_site(cls, site, ca):
        return cls(f"{site.base_url}/mcp/api", site.token, ca)

    def introduce(self):
        """The handshake that some servers insist on; the session's id is kept."""
        caller = Caller(self)
        status, headers, _ = caller.send("initialize", {
            "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.session = headers.get("mcp-session-id") if status == 200 else None
        caller.close()
        return self

    def headers(self):
        pairs = [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", VERSION)]
        if self.token:
            pairs.append(("Authorization", f"Bearer {self.token}"))
        if self.session:
            pairs.append(("Mcp-Session-Id", self.session))
        return pairs


def new_name():
    return f"bench-{secrets.token_hex(8)}"


def messages(headers, body):
    """The JSON-RPC messages of an answer, be it JSON or an event stream."""
    if headers.get("content-type", "").startswith("text/event-stream"):
        return [json.loads(line[5:]) for line in body.decode().splitlines() if line.startswith("data:") and line[5:].strip()]
    return [json.loads(body)]


class Caller:
    """One kept-alive connection; connects when it has to."""

    def __init__(self, target):
        self.target = target
        self.connection = None
        self.around = None  # milliseconds of the last run that its program did not take

    def connect(self):
        if not self.connection:
            self.connection = Connection(self.target.address, self.target.ca)
        return self.connection

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def request(self, method, params):
        return request("POST", self.target.path, self.target.headers(),
                       {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def send(self, method, params):
        return self.connect().call(self.request(method, params))

    def warm_up(self):
        """The handshake is over before anything is measured; a connection that was idle for too long is made again."""
        try:
            self.send("ping", {})
        except ConnectionError:
            self.close()
            self.send("ping", {})
        return self

    def run(self, work, conversation=None):
        """Milliseconds of one call, from its first byte to the answer's last; a connection that has to be made counts."""
        call = self.request("tools/call", {"name": "run_code", "arguments": {
            "conversationId": conversation or new_name(), "language": work.language, "code": work.code}})
        start = time.perf_counter()
        status, headers, body = self.connect().call(call)
        took = (time.perf_counter() - start) * 1000
        if status != 200:
            raise RuntimeError(f"run_code: status {status}: {body[:300]!r}")
        result = messages(headers, body)[-1].get("result", {})
        if result.get("isError") or work.proof not in json.dumps(result):
            raise RuntimeError(f"run_code: {work.name} did not succeed: {body[:300]!r}")
        self.around = took - result.get("structuredContent", {}).get("durationMs", took)
        return took

    def tool(self, name, arguments):
        """structuredContent of a call."""
        _, headers, body = self.send("tools/call", {"name": name, "arguments": arguments})
        result = messages(headers, body)[-1].get("result", {})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")
        return result["structuredContent"]

    def directory(self, conversation):
        """The name of the conversation's directory, which stands in its files' links."""
        made = self.tool("upload_file", {"conversationId": conversation, "filename": "name.txt", "content": ""})
        return made["file"]["url"].partition("/files/")[2].partition("/")[0]

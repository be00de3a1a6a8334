"""A small MCP client over HTTP(S) with a kept-alive connection, and the raw requests below it."""
import base64
import contextlib
import http.client
import json
import socket
import ssl
import time
import urllib.parse

import wire
from harness import PATIENCE, Failed, check, shorten

MODERN = "2026-07-28"
API = "/mcp/api"  # where results are objects; test_answers.py looks at the place for models
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META_VERSION = "io.modelcontextprotocol/protocolVersion"
RUN_HEADERS = {"MCP-Protocol-Version": LEGACY[-1]}
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class ToolError(Failed):
    """The tool's result said isError; args[0] is its text."""

    def __init__(self, result):
        self.result = result
        text = " ".join(block.get("text", "") for block in result.get("content", []))
        super().__init__(text)
        self.text = text


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        """The answer; of an event stream, which a long silence makes of it, the last message."""
        if "text/event-stream" in self.headers.get("Content-Type", ""):
            return self.messages()[-1]
        try:
            return json.loads(self.body)
        except ValueError as problem:
            raise Failed(f"status {self.status}, body is no JSON: {shorten(self.body)}") from problem

    def messages(self):
        """All messages of the answer, be it JSON or an event stream."""
        return wire.messages_of(self.headers, self.body)

    def error_code(self):
        return self.json().get("error", {}).get("code")


def timed(arguments):
    """A tool's arguments: timeout, in seconds as everywhere in Python, is timeoutMs there."""
    rest = {name: value for name, value in arguments.items() if name != "timeout"}
    return rest | ({"timeoutMs": int(1000 * arguments["timeout"])} if "timeout" in arguments else {})


class Client:
    """One tenant's view of one server."""

    def __init__(self, base_url, token=None, ca=None, timeout=120, address=None):
        """address: the (host, port) where the server of an http: base_url is, whatever its name says; None: there."""
        self.base_url = base_url
        self.address = address
        self.token = token
        self.ca = ca
        self.timeout = timeout
        self.conversation = None
        self._connection = None
        self.place = API
        self._used = False
        self._id = 0

    def with_token(self, token):
        other = Client(self.base_url, token, self.ca, self.timeout, self.address)
        other.place = self.place
        return other

    def fresh(self):
        return self.with_token(self.token)

    # ---- HTTP ----

    def connect(self):
        url = urllib.parse.urlsplit(self.base_url)
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca)
            return http.client.HTTPSConnection(url.hostname, url.port, timeout=self.timeout, context=context)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=self.timeout)
        if self.address:
            connection.sock = socket.create_connection(self.address, self.timeout)
        return connection

    def close(self):
        if self._connection:
            self._connection.close()
        self._connection = None

    def http(self, method, path, body=None, headers=None):
        """One request. A kept connection that the server has closed meanwhile is opened again, once."""
        for last in (False, True):
            reused = self._connection is not None
            if not reused:
                self._connection = self.connect()
            try:
                self._connection.request(method, path, body=body, headers=headers or {})
                answer = self._connection.getresponse()
                data = answer.read()
                if answer.will_close:
                    self.close()
                return Response(answer.status, answer.headers, data)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
                self.close()
                if last or not reused:
                    raise
            except BaseException:
                self.close()
                raise
        raise AssertionError("not reached")

    def headers(self, extra=None):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        headers.update(extra or {})
        return {name: value for name, value in headers.items() if value is not None}

    def post(self, message, headers=None, path=None, patient=True):
        """POSTs a JSON value, or bytes as they are. patient: waits when a rate limit says 429."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        for _ in range(200):
            answer = self.http("POST", path or self.place, body, self.headers(headers))
            if answer.status != 429 or not patient:
                wire.examine(message, self.headers(headers), answer.status, answer.headers, answer.body)
                return answer
            time.sleep(0.3)
        raise Failed("429 for a minute")

    # ---- JSON-RPC ----

    def request(self, method, params=None, id_=None, headers=None):
        if id_ is None:
            self._id += 1
            id_ = self._id
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message, headers)

    def result(self, method, params=None, headers=None):
        answer = self.request(method, params, headers=headers)
        body = answer.json()
        if answer.status != 200 or "result" not in body:
            raise Failed(f"{method}: status {answer.status}: {shorten(body)}")
        return body["result"]

    def modern(self, method, params=None, headers=None, meta=None, id_=1):
        params = dict(params or {})
        params["_meta"] = meta if meta is not None else {META_VERSION: MODERN, META_CAPABILITIES: {}}
        all_headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method == "tools/call" and "name" in params:
            all_headers["Mcp-Name"] = params["name"]
        all_headers.update(headers or {})
        return self.post({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}, all_headers)

    # ---- tools ----

    def tool(self, name, arguments, headers=None):
        """The whole result, whether or not it says isError."""
        return self.result("tools/call", {"name": name, "arguments": arguments},
                           headers or {"MCP-Protocol-Version": "2025-11-25"})

    def structured(self, name, arguments):
        result = self.tool(name, arguments)
        if result.get("isError"):
            raise ToolError(result)
        check("structuredContent" in result, f"no structuredContent: {shorten(result)}")
        return result["structuredContent"]

    def run_whole(self, code, language="python", conversation=None, **arguments):
        arguments = timed(arguments) | {"conversationId": conversation or self.conversation, "language": language, "code": code}
        return self.tool("run_code", arguments)

    def run(self, code, language="python", conversation=None, **arguments):
        arguments = timed(arguments) | {"conversationId": conversation or self.conversation, "language": language, "code": code}
        return self.structured("run_code", arguments)

    def upload(self, name, content, conversation=None):
        return self.structured("upload_file", {
            "conversationId": conversation or self.conversation, "filename": name,
            "content": base64.b64encode(content).decode()})

    def tool_error(self, name, arguments):
        """The text of a call that must be refused with isError."""
        result = self.tool(name, arguments)
        check(result.get("isError") is True, f"not refused: {shorten(result)}")
        return " ".join(block.get("text", "") for block in result["content"])

    def run_error(self, code, language="python", conversation=None, **arguments):
        arguments = timed(arguments) | {"conversationId": conversation or self.conversation, "language": language, "code": code}
        return self.tool_error("run_code", arguments)

    def download(self, url, headers=None, method="GET"):
        """A file by its URL, over a connection of its own."""
        parts = urllib.parse.urlsplit(url)
        with contextlib.closing(Client(f"{parts.scheme}://{parts.netloc}", None, self.ca)) as one:
            return one.http(method, parts.path + (f"?{parts.query}" if parts.query else ""), headers=headers)

    # ---- calls that are watched from outside ----

    def begin_run(self, code, language="python", conversation=None, **arguments):
        """Sends run_code and does not wait; returns the open connection. The run goes on when that is closed."""
        return self.begin_legacy("run_code", timed(arguments) | {
            "conversationId": conversation or self.conversation, "language": language, "code": code})

    def begin_legacy(self, tool, arguments):
        """The same of any tool."""
        connection = self.connect()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        connection.request("POST", self.place, json.dumps(message), self.headers(RUN_HEADERS))
        return connection

    def begin_cancellable(self, code, language="python", **arguments):
        """The same in the modern era: closing the connection cancels the run. Not for end_run."""
        return self.begin_call("run_code", timed(arguments) | {"conversationId": self.conversation, "language": language, "code": code})

    def begin_call(self, tool, arguments):
        """The same of any tool."""
        connection = self.connect()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                   "params": {"name": tool, "arguments": arguments,
                              "_meta": {META_VERSION: MODERN, META_CAPABILITIES: {}}}}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        connection.request("POST", self.place, json.dumps(message), self.headers(headers))
        return connection


def end_run(connection, timeout):
    """What came of begin_run: (structuredContent or text of an error, status), or (None, None) when closed unanswered."""
    connection.sock.settimeout(timeout * PATIENCE)
    try:
        answer = connection.getresponse()
        body = answer.read()
    except (http.client.HTTPException, ConnectionError, ssl.SSLError) as problem:
        if isinstance(problem, (socket.timeout, TimeoutError)):
            raise Failed(f"no answer within {timeout * PATIENCE} s") from problem
        return None, None
    finally:
        connection.close()
    if answer.status != 200:
        return body.decode("utf-8", "replace"), answer.status
    wire.examine({"id": 1, "method": "tools/call"}, RUN_HEADERS, 200, answer.headers, body)
    result = wire.messages_of(answer.headers, body)[-1].get("result", {})
    return result.get("structuredContent") or result, 200

"""Event streams that stay open: read by a thread, looked at by the test; every message is checked against its schema."""
import contextlib
import json
import queue
import socket
import threading
import time

import schema
import wire
from harness import PATIENCE, Failed, at_test_end, check, shorten
from mcp import API


class Stream:
    """One open answer of /mcp. message: the JSON that is POSTed; None: GET."""

    def __init__(self, client, message=None, headers=None, method=None, revision=None, path=API):
        self.request = message
        sent = client.headers(headers)
        if message is None:
            sent.pop("Content-Type")
        self.revision = revision or wire.revision_of(message, sent)
        self.connection = client.connect()
        body = None if message is None else json.dumps(message).encode()
        self.opened = time.monotonic()
        self.connection.request(method or ("GET" if message is None else "POST"), path, body, sent)
        self._sent = sent
        self._messages = queue.Queue()
        self.events = []
        self.comments = 0
        self.closed = threading.Event()
        self.problem = None
        self.answer = None
        at_test_end(self.close)

    def begin(self):
        """Waits for the status line and starts to read. For a call that answers late this waits, too."""
        self.answer = self.connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()
        return self

    @property
    def status(self):
        return self.answer.status

    @property
    def headers(self):
        return self.answer.headers

    def is_stream(self):
        return wire.is_stream(self.headers)

    def _read(self):
        reader, plain = wire.EventReader(), b""
        try:
            while True:
                data = self.answer.read1(65536)
                if not data:
                    break
                if not self.is_stream():
                    plain += data
                    continue
                for event in reader.feed(data):
                    self._take(event)
                self.comments = reader.comments
            if plain:
                self._put(json.loads(plain))
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem
        self.closed.set()
        self._messages.put(None)

    def _take(self, event):
        self.events.append(event)
        message = event.message()
        if message is not None:
            self._put(message)

    def _put(self, message):
        mine = isinstance(self.request, dict) and "method" not in message and message.get("id") == self.request.get("id")
        schema.check_message(message, self.revision, self.request["method"] if mine else None)
        self._messages.put(message)

    def next(self, seconds=5, what="a message"):
        """The next message; None when the stream has ended."""
        try:
            message = self._messages.get(timeout=seconds * PATIENCE)
        except queue.Empty:
            raise Failed(f"not within {seconds * PATIENCE} s: {what}") from None
        if message is None:
            self._messages.put(None)
            if isinstance(self.problem, Failed):
                raise self.problem
        return message

    def expect(self, method, seconds=5):
        """The next message, which must be this notification or request."""
        message = self.next(seconds, method)
        check(message is not None and message.get("method") == method, f"wanted {method}, got {shorten(message)}")
        return message

    def wait_for(self, method, seconds=5):
        """The next message of this method; others in between are dropped."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            message = self.next(max(0.01, (end - time.monotonic()) / PATIENCE), method)
            check(message is not None, f"the stream ended without {method}")
            if message.get("method") == method:
                return message

    def result(self, seconds=30):
        """The answer to the request; what came before it is in self.before."""
        self.before = []  # pylint: disable=attribute-defined-outside-init
        while True:
            message = self.next(seconds, "the answer")
            check(message is not None, f"the stream ended without an answer, after {shorten(self.before)}")
            if "method" not in message:
                equal_id = self.request["id"]
                check(message.get("id") == equal_id, f"an answer to {message.get('id')!r} instead of {equal_id!r}")
                return message
            self.before.append(message)

    def waiting(self):
        """The messages that have come and were not looked at yet."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._messages.get_nowait())
        return [message for message in found if message is not None]

    def is_silent(self, seconds):
        """Fails when a message comes within this time."""
        with contextlib.suppress(queue.Empty):
            message = self._messages.get(timeout=seconds)
            raise Failed(f"nothing was expected, got {shorten(message)}")

    def close(self):
        # The socket belongs to the answer once headers have been read; shutting it down also wakes the reader.
        with contextlib.suppress(OSError, AttributeError):
            (self.connection.sock or self.answer.fp.raw._sock).shutdown(socket.SHUT_RDWR)  # pylint: disable=protected-access
        with contextlib.suppress(OSError):
            self.connection.close()


class Session:
    """A legacy session, by hand."""

    def __init__(self, client, revision="2025-11-25", capabilities=None):
        self.client = client
        self.revision = revision
        self._next = 0
        params = {"protocolVersion": revision, "capabilities": capabilities or {},
                  "clientInfo": {"name": "e2e", "version": "1"}}
        answer = client.request("initialize", params)
        check(answer.status == 200, f"initialize: {answer.status} {shorten(answer.body)}")
        self.id = answer.headers.get("Mcp-Session-Id")
        check(self.id, "initialize gave no Mcp-Session-Id")
        self.capabilities = answer.json()["result"]["capabilities"]
        check(self.notify("notifications/initialized").status == 202, "notifications/initialized was not accepted")

    def headers(self, extra=None):
        return {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.revision} | (extra or {})

    def message(self, method, params=None, id_=None):
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next if id_ is None else id_, "method": method}
        return message | ({"params": params} if params is not None else {})

    def request(self, method, params=None, headers=None):
        return self.client.post(self.message(method, params), self.headers(headers))

    def result(self, method, params=None):
        """The result; notifications in front of it are dropped."""
        answer = self.request(method, params)
        last = answer.messages()[-1]
        check(answer.status == 200 and "result" in last, f"{method}: {answer.status} {shorten(last)}")
        return last["result"]

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        return self.client.fresh().post(message | ({"params": params} if params is not None else {}), self.headers())

    def respond(self, id_, result):
        """Answers a request of the server, over a connection of its own."""
        return self.client.fresh().post({"jsonrpc": "2.0", "id": id_, "result": result}, self.headers())

    def open(self, method, params=None, id_=None):
        """A request whose answer is read as it comes; begin() has not been called."""
        return Stream(self.client, self.message(method, params, id_), self.headers(), revision=self.revision)

    def listen(self, headers=None):
        """The session's GET stream."""
        stream = Stream(self.client, None, self.headers({"Accept": "text/event-stream"} | (headers or {})),
                        revision=self.revision)
        return stream.begin()

    def end(self):
        return self.client.fresh().http("DELETE", API, headers=self.client.headers(self.headers()))


def modern_message(method, params=None, id_=1, capabilities=None, meta=None):
    meta = {wire.META_VERSION: schema.MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities or {}} | (meta or {})
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": meta} | (params or {})}


def modern_headers(method, name=None):
    headers = {"MCP-Protocol-Version": schema.MODERN, "Mcp-Method": method}
    return headers | ({"Mcp-Name": name} if name else {})


def open_modern(client, method, params=None, id_=1, name=None, **more):
    """A modern request whose answer is read as it comes; begin() has not been called."""
    return Stream(client, modern_message(method, params, id_, **more), modern_headers(method, name))

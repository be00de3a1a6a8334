"""What travelled over HTTP, taken apart again: event streams, and every message checked against its revision's schema."""
import json

import schema
from harness import Failed, shorten

META_VERSION = "io.modelcontextprotocol/protocolVersion"
ASSUMED = "2025-03-26"
# Revisions by session id: what later messages of the session are judged by.
_sessions = {}


class Event:
    def __init__(self):
        self.id = self.name = self.retry = self.data = None

    def message(self):
        """The JSON-RPC message, or None for an event without data."""
        if not self.data:
            return None
        try:
            return json.loads(self.data)
        except ValueError as problem:
            raise Failed(f"an event's data is no JSON: {shorten(self.data)}") from problem


class EventReader:
    """Takes bytes as they come, gives whole events; comments are counted."""

    def __init__(self):
        self.comments = 0
        self._rest = b""

    def feed(self, data):
        self._rest += data
        while b"\n\n" in self._rest:
            block, _, self._rest = self._rest.partition(b"\n\n")
            event = self._event(block.decode("utf-8"))
            if event:
                yield event

    def _event(self, block):
        event, fields = Event(), 0
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not name:
                self.comments += 1
                continue
            fields += 1
            if name == "data":
                if event.data is not None:
                    raise Failed("a message must be on one data line")
                event.data = value
            elif name in ("id", "retry"):
                setattr(event, name, value)
            elif name == "event":
                event.name = value
            else:
                raise Failed(f"unknown field of an event: {line!r}")
        return event if fields else None


def events_of(body):
    """All events of a finished stream."""
    reader = EventReader()
    found = list(reader.feed(body))
    if reader._rest:  # pylint: disable=protected-access
        raise Failed(f"the stream ends in the middle of an event: {shorten(body[-200:])}")
    return found


def is_stream(headers):
    return (headers.get("Content-Type") or "").partition(";")[0].strip().lower() == "text/event-stream"


def messages_of(headers, body):
    """The messages of an answer, whether it is JSON or an event stream."""
    if is_stream(headers):
        return [message for message in (event.message() for event in events_of(body)) if message is not None]
    whole = json.loads(body)
    return whole if isinstance(whole, list) else [whole]


def revision_of(request, headers):
    """The revision whose rules hold for the answer to request, as far as request and headers tell."""
    params = request.get("params") if isinstance(request, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    claim = meta.get(META_VERSION) if isinstance(meta, dict) else None
    header = (headers.get("MCP-Protocol-Version") or "").strip()
    if claim is not None or header >= schema.MODERN:
        return schema.MODERN
    session = headers.get("Mcp-Session-Id")
    if session in _sessions:
        return _sessions[session]
    return header if header in schema.REVISIONS else ASSUMED


def examine(request, request_headers, status, headers, body):
    """Fails when an answer of /mcp breaks the schema. request: the JSON value that was sent, or bytes that are none."""
    kind = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if not body or kind not in ("application/json", "text/event-stream"):
        return
    messages = messages_of(headers, body)
    methods = _methods_by_id(request)
    revision = revision_of(request, request_headers)
    for message in messages:
        answered = message.get("id") if isinstance(message, dict) and "method" not in message else None
        method = methods.get(_key(answered))
        if method == "initialize" and "result" in message:
            revision = message["result"].get("protocolVersion", revision)
            if headers.get("Mcp-Session-Id"):
                _sessions[headers["Mcp-Session-Id"]] = revision
        if status == 200 and "method" not in message and methods and _key(answered) not in methods:
            raise Failed(f"an answer to a request that was not sent: {shorten(message)}")
        schema.check_message(message, revision, method)


def _methods_by_id(request):
    requests = request if isinstance(request, list) else [request]
    return {_key(one["id"]): one["method"] for one in requests
            if isinstance(one, dict) and isinstance(one.get("method"), str) and _key(one.get("id")) is not None}


def _key(id_):
    """Ids as keys of a dict: 1, "1" and true stay apart."""
    if isinstance(id_, bool) or not isinstance(id_, (str, int)):
        return None
    return type(id_).__name__, id_

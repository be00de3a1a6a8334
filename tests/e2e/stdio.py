"""sandcgi as a desktop client starts it: one JSON message per line, over pipes."""
import json
import queue
import subprocess
import threading

import procs
import schema
import sites
from harness import PATIENCE, Failed, at_test_end, check, shorten
from streams import modern_message


class Stdio:
    def __init__(self, config, revision=None, answers="structured", options=(), environment=None, binary=sites.BINARY, **popen):
        """config: None: without settings."""
        self.revision = revision
        self._lines = queue.Queue()
        self._next = 0
        self._methods = {}
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [binary, "stdio", *(["--config", config] if config else ()), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=popen.pop("stderr", subprocess.DEVNULL),
            env=sites.clean_environment() | sites.SANITIZER_ENV | {"ANSWERS": answers} | (environment or {}), **popen)
        at_test_end(procs.end, self.process)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def send(self, message):
        """A JSON value, or bytes as they are."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def call(self, method, params=None, id_=None):
        """Sends a request of this client's era; returns its id."""
        self._next += 1
        id_ = self._next if id_ is None else id_
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        if self.revision == schema.MODERN:
            message = modern_message(method, params, id_)
        elif params is not None:
            message["params"] = params
        self._methods[id_] = method
        self.send(message)
        return id_

    def next(self, seconds=20):
        """The next message; None at the end of the output."""
        try:
            line = self._lines.get(timeout=seconds * PATIENCE)
        except queue.Empty:
            raise Failed(f"nothing on standard output within {seconds * PATIENCE} s") from None
        if line is None:
            return None
        try:
            message = json.loads(line)
        except ValueError as problem:
            raise Failed(f"a line that is no message: {shorten(line)}") from problem
        if self.revision and isinstance(message, dict):
            method = self._methods.get(message.get("id")) if "method" not in message else None
            schema.check_message(message, self.revision, method)
        return message

    def answer(self, id_, seconds=30):
        """The answer to this request; notifications before it are dropped."""
        while True:
            message = self.next(seconds)
            check(message is not None, "the program ended without an answer")
            if "method" not in message:
                check(message.get("id") == id_, f"an answer to {message.get('id')!r} instead of {id_!r}")
                return message

    def result(self, method, params=None, seconds=30):
        answer = self.answer(self.call(method, params), seconds)
        check("result" in answer, f"{method}: {shorten(answer)}")
        return answer["result"]

    def initialize(self, revision="2025-11-25", capabilities=None):
        self.revision = revision
        result = self.result("initialize", {"protocolVersion": revision, "capabilities": capabilities or {},
                                            "clientInfo": {"name": "e2e", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def is_silent(self, seconds):
        try:
            raise Failed(f"nothing was expected, got {shorten(self._lines.get(timeout=seconds))}")
        except queue.Empty:
            pass

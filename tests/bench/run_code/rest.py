"""A bare client of the engine's REST API: the cost of runs without sandcgi.

Containers have the body that the broker sends (the golden copy of the end-to-end tests); a run has ended when the entry
program reports it, as for the broker. Nothing waits for the engine's own word of the end, and removal is never counted.
"""
import json
import os
import struct
import tempfile
import time

import engine
from harness import TOP
from http1 import Connection, request
from work import LeftOut

API = "/v1.40"
ENTRY = ["/usr/local/bin/entry", "-L", "/usr/local/lib/sandbox/languages", "-F"]  # and the language whose interpreter waits
READY_S = 60
REST_S = 0.5  # the least age of a server's warm containers when they are claimed: a processor's caches forget


def _record(tag, number, payload=b""):
    return tag + struct.pack(">II", 4 + len(payload), number) + payload


def program(code):
    """What is sent at the claim."""
    return _record(b"C", 1, code.encode()) + _record(b"X", 1)


class Frames:
    """Takes the engine's stream apart, and the entry program's frames within."""

    def __init__(self):
        self._stream = bytearray()
        self._entry = bytearray()
        self.tier = None
        self.report = None
        self.output = bytearray()

    def feed(self, data):
        self._stream += data
        while len(self._stream) >= 8:
            kind, length = self._stream[0], struct.unpack(">I", self._stream[4:8])[0]
            if len(self._stream) < 8 + length:
                break
            payload = bytes(self._stream[8:8 + length])
            del self._stream[:8 + length]
            if kind == 2:
                raise RuntimeError(f"the entry program complains: {payload!r}")
            self._entry += payload
        self._frames()

    def _frames(self):
        while len(self._entry) >= 5:
            tag, length = self._entry[:1], struct.unpack(">I", self._entry[1:5])[0]
            if len(self._entry) < 5 + length:
                break
            payload = bytes(self._entry[9:5 + length])  # behind the id
            del self._entry[:5 + length]
            if tag == b"W":
                self.tier = payload.decode().split(" ")[0]  # its memory may stand behind
            elif tag == b"R":
                self.report = json.loads(payload)
            elif tag == b"O":
                self.output += payload


class Container:
    """One container for one run, started and attached."""

    def __init__(self, client, work):
        self.client = client
        self.work = work
        self.frames = Frames()
        self.data = tempfile.mkdtemp(dir=client.folder)
        os.chown(self.data, 1000, 1000)
        answer = client.call("POST", "/containers/create", client.body(work.language, self.data))
        self.id = answer["Id"]
        self.stream = Connection(client.socket)
        status, _, _ = self.stream.call(request(
            "POST", f"{API}/containers/{self.id}/attach?stream=1&stdin=1&stdout=1&stderr=1",
            (("Connection", "Upgrade"), ("Upgrade", "tcp"))))
        if status != 101:
            raise RuntimeError(f"the engine answers {status} to attach")
        self.frames.feed(self.stream.taken_over())
        client.call("POST", f"/containers/{self.id}/start")

    def make_ready(self):
        """Waits until the container has the tier that the work needs."""
        labels = self.client.labels()
        if labels.get("sandbox.warm") != "true":
            return self
        if self.work.tier == "preloaded":
            self.stream.sock.sendall(_record(b"P", 0, labels.get("sandbox.preload", "").encode()))
        self.stream.sock.settimeout(READY_S)
        while self.frames.tier != self.work.tier:
            self.frames.feed(self.stream.receive())
        return self

    def run(self):
        """Hands the program over and reads to the report."""
        self.stream.sock.sendall(program(self.work.code))
        while self.frames.report is None:
            self.frames.feed(self.stream.receive())
        if self.work.proof.encode() not in self.frames.output:
            raise RuntimeError(f"wrong output: {bytes(self.frames.output)!r} {self.frames.report}")

    def remove(self):
        self.stream.close()
        self.client.call("DELETE", f"/containers/{self.id}?force=1&v=1")


class Client:
    """One kept-alive connection to the engine, for one thread."""

    def __init__(self, folder):
        self.socket = engine.socket_path()
        self.folder = folder
        self.connection = Connection(self.socket)
        self._labels = None
        with open(f"{TOP}/tests/e2e/golden/container.json", encoding="utf-8") as file:
            golden = json.load(file)
        self._config = golden["Config"]
        self._host = {name: value for name, value in golden["HostConfig"].items() if value is not None}
        if os.geteuid():
            raise LeftOut("the bare client gives its folders to the sandboxes' user: it needs root")

    def close(self):
        self.connection.close()

    def body(self, language, data):
        return self._config | {"Image": engine.WORKBENCH, "Entrypoint": [*ENTRY, language], "Labels": {"sandbox.bench": "true"},
                               "HostConfig": self._host | {"Binds": [f"{data}:/data:rw"]}}

    def call(self, method, path, body=None):
        status, _, answer = self.connection.call(request(method, API + path, body=body))
        if status >= 400 and not (method == "DELETE" and status in (404, 409)):
            raise RuntimeError(f"the engine answers {status} to {method} {path}: {answer[:300]!r}")
        return json.loads(answer) if answer else None

    def labels(self):
        self._labels = self._labels or engine.image(engine.WORKBENCH)["Config"]["Labels"]
        return self._labels

    def cold(self, work):
        """Milliseconds from the first byte of create to the report."""
        start = time.perf_counter()
        container = Container(self, work)
        container.run()
        took = (time.perf_counter() - start) * 1000
        container.remove()
        return took

    def waiting(self, work):
        """Milliseconds from the claim of a warm container to the report."""
        container = Container(self, work).make_ready()
        time.sleep(REST_S)
        start = time.perf_counter()
        container.run()
        took = (time.perf_counter() - start) * 1000
        container.remove()
        return took


def sweep():
    """Removes what a measurement that broke off has left."""
    for one in engine.containers(sandbox_bench="true"):
        engine.remove(one["Id"])

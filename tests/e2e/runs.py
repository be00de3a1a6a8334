"""Runs that outlive the call that began them: begun, looked at, followed to their end."""
import http.client
import os
import ssl
import time

import procs
from harness import Failed, check, equal, wait_until
from mcp import ToolError, timed
from streams import modern_headers, modern_message, open_modern

TASKS = "io.modelcontextprotocol/tasks"
# What a client sees when a worker, nginx or the broker is ended in the middle of its call.
BROKEN = (OSError, http.client.HTTPException, ssl.SSLError)
# The beginning of a program in Bash that goes on when go() has been called.
UNTIL_GO = "until [ -e go ]; do sleep 0.05; done; rm go; "


def go(client):
    client.upload("go", b"")


def begin(client, code, language="bash", **arguments):
    """The runId of a run in the background."""
    result = client.run(code, language, background=True, **arguments)
    equal(result["status"], "running")
    return result["runId"]


def _result(client, tool, arguments):
    """A run's result, which is an error when its outcome is unknown (lost); ToolError when there is none."""
    whole = client.tool(tool, arguments)
    if "structuredContent" not in whole:
        raise ToolError(whole)
    return whole["structuredContent"]


def look(client, run_id, **arguments):
    return _result(client, "get_run", {"runId": run_id} | arguments)


def cancel(client, run_id):
    return _result(client, "cancel_run", {"runId": run_id})


def listed(client, **arguments):
    return client.structured("list_runs", arguments)["runs"]


def arguments_of(client, code, language="bash", **arguments):
    return {"conversationId": client.conversation, "language": language, "code": code} | timed(arguments)


def open_call(client, code, language="bash", meta=None, capabilities=None, **arguments):
    """run_code of the modern era, its answer read as it comes; begin() has not been called."""
    return open_modern(client, "tools/call", {"name": "run_code", "arguments": arguments_of(client, code, language, **arguments)},
                       name="run_code", meta=meta, capabilities=capabilities)


class Follower:
    """A client that only knows the handle: polls until the run is over, and takes no offence at broken connections."""

    def __init__(self, site, client, run_id):
        self.site = site
        self.client = client
        self.run_id = run_id
        self.output = ""
        self.since = 0
        self.polls = self.broken = 0

    def poll(self, wait_ms=3000):
        """The answer of one get_run; None when the connection broke, or the server is just being replaced."""
        try:
            answer = look(self.client, self.run_id, sinceByte=self.since, waitMs=wait_ms)
        except BROKEN:
            self._again()
            return None
        except Failed as refused:
            if "no such run" in str(refused):
                raise
            self._again()
            return None
        self.polls += 1
        self.output += answer["newOutput"]
        self.since = answer["nextByte"]
        return answer

    def _again(self):
        self.broken += 1
        self.client.close()
        time.sleep(0.1)

    def to_the_end(self, seconds):
        """The final result; all increments are in output then."""
        def over():
            answer = self.poll()
            return answer if answer and answer["status"] != "running" else None
        return wait_until(over, seconds, f"run {self.run_id} ends")


class Task:
    """A run as a task of the modern era."""

    def __init__(self, client, code, language="bash", **arguments):
        self.client = client
        self.capabilities = {"extensions": {TASKS: {}}}
        self.created = self._ask("tools/call", {"name": "run_code", "arguments": arguments_of(client, code, language, **arguments)},
                                 "run_code")
        equal(self.created.get("resultType"), "task", "resultType")
        self.id = self.created["taskId"]

    def _ask(self, method, params, name):
        answer = self.client.post(modern_message(method, params, capabilities=self.capabilities), modern_headers(method, name))
        message = answer.messages()[-1]
        check("result" in message, f"{method}: {answer.status} {message}")
        return message["result"]

    def get(self):
        return self._ask("tasks/get", {"taskId": self.id}, self.id)

    def cancel(self):
        return self._ask("tasks/cancel", {"taskId": self.id}, self.id)

    def to_the_end(self, seconds):
        def over():
            try:
                task = self.get()
            except (*BROKEN, Failed):
                self.client.close()
                return None
            return task if task["status"] != "working" else None
        return wait_until(over, seconds, f"task {self.id} ends", pause=0.5)


class Footprint:
    """What a server holds: to be the same again when nothing of a run is left."""

    def __init__(self, site):
        self.site = site
        self.broker = site.broker()
        self.descriptors = self._descriptors()
        self.names = self._names()

    def _descriptors(self):
        return len(procs.open_files(self.broker))

    def _names(self):
        """Entries of the tree's own directories, without those of conversations."""
        return {name: sorted(os.listdir(f"{self.site.root}/{name}")) for name in (".runs", ".staging", ".pool")
                if os.path.isdir(f"{self.site.root}/{name}")}

    def what_is_left(self, kept=()):
        """A text for each kind of thing that a run has left; kept: ids of runs whose records may be there."""
        left = []
        if self.site.broker() != self.broker:
            return ["the broker is another process"]
        if self.site.containers():
            left.append(f"{len(self.site.containers())} containers")
        if self.site.run_children():
            left.append(f"children {self.site.run_children()}")
        if self._descriptors() > self.descriptors:
            left.append(f"{self._descriptors()} descriptors of the broker, were {self.descriptors}")
        for folder, names in self._names().items():
            new = [name for name in names if name not in self.names.get(folder, ())
                   and not (name.endswith(".d") and name.partition("-")[0] in kept)]
            if new:
                left.append(f"{folder}: {new[:5]}")
        return left

    def wait_until_clean(self, seconds, kept=()):
        end = time.monotonic() + seconds
        while left := self.what_is_left(kept):
            if time.monotonic() > end:
                raise Failed(f"left after {seconds} s: {left}")
            time.sleep(0.3)

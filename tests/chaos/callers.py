"""Clients that call while the server suffers, and hold every answer against the one that is right."""
import collections
import http.client
import random
import secrets
import ssl
import threading
import time

import streams
from mcp import ToolError

BROKEN = (OSError, http.client.HTTPException, ssl.SSLError)
# What a server under attack may say instead of an answer.
HONEST_STATUS = (408, 429, 500, 502, 503, 504)
HONEST_TEXT = ("try again", "disk is nearly full", "lost", "could not read or write", "is stopping",
               "no space", "at the moment")
ENGINE_TEXT = "container engine does not answer"
HONEST_END = ("busy", "lost", "killed", "timeout", "cancelled", "running", "disk_limit", "out_of_memory")


class Wrong(Exception):
    """An answer that is not true."""


class Refused(Exception):
    """No answer, and the client was told so or cut off."""


class Ledger:
    """The outcomes of all callers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.right = []  # (begun, ended) of each right answer
        self.refused = collections.Counter()
        self.wrong = []
        self.slowest = 0.0
        self.act = "the start"  # under way, or the latest
        self.engine_away = collections.deque([False], 3)  # of the latest acts: may the engine be out of reach?

    def note(self, begun, outcome, text=""):
        with self.lock:
            now = time.monotonic()
            self.slowest = max(self.slowest, now - begun)
            if outcome == "right":
                self.right.append((begun, now))
            elif outcome == "refused":
                self.refused[text[:90]] += 1
            else:
                self.wrong.append(f"{text} ({now - begun:.1f} s; at its end: {self.act})")

    def first_right_after(self, moment):
        """Seconds from the moment to the first right answer of a call that began after it; None: none yet."""
        with self.lock:
            return min((ended - moment for begun, ended in self.right if begun >= moment), default=None)


def _expect(got, want, what):
    if got != want:
        raise Wrong(f"{what}: got {str(got)[:200]!r}, want {want!r}")


class Caller(threading.Thread):
    """One client of one tenant: one call after the other, of all kinds."""

    def __init__(self, site, token, seed, ledger):
        super().__init__(daemon=True)
        self.site, self.ledger = site, ledger
        self.client = site.client(timeout=60).with_token(token)
        self.client.conversation = f"chaos-{secrets.token_hex(6)}"
        self.chance = random.Random(seed)
        self.files = {}  # of the conversation, told to be there: name -> (content, URL or None)
        self.variable = None  # of the session
        self.tools = None  # how many there are
        self.n = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            self.one(self.chance.choices(list(CALLS), list(CALLS.values()))[0])
            self.over.wait(self.chance.uniform(0, 0.4))

    def one(self, call):
        begun = time.monotonic()
        self.n += 1
        try:
            call(self)
            self.ledger.note(begun, "right")
        except Refused as told:
            self.ledger.note(begun, "refused", str(told))
        except BROKEN as problem:
            self.client.close()
            self.ledger.note(begun, "refused", f"cut off: {type(problem).__name__}")
        except ToolError as told:
            honest = any(self.ledger.engine_away) if ENGINE_TEXT in told.text else any(words in told.text for words in HONEST_TEXT)
            self.ledger.note(begun, "refused" if honest else "wrong", told.text)
        except Exception as problem:  # pylint: disable=broad-except
            self.ledger.note(begun, "wrong", f"{call.__name__}: {problem!r}"[:600])

    def word(self):
        return f"w{self.n}-{secrets.token_hex(4)}"

    def tool(self, name, **arguments):
        """structuredContent of a tool's result; Refused for an HTTP status that is honest."""
        if name != "get_run":
            arguments["conversationId"] = self.client.conversation
        answer = self.client.request("tools/call", {"name": name, "arguments": arguments}, headers={"MCP-Protocol-Version": "2025-11-25"})
        if answer.status in HONEST_STATUS:
            raise Refused(f"HTTP {answer.status}")
        result = answer.json().get("result")
        if answer.status != 200 or result is None:
            raise Wrong(f"{name}: {answer.status} {answer.body[:300]}")
        if result.get("isError") and result.get("structuredContent", {}).get("status") is None:
            raise ToolError(result)
        return result["structuredContent"]

    def program(self, code, want, language="python", **arguments):
        """A program that must print want; a way to end that is told honestly is none of the server's faults."""
        result = self.tool("run_code", language=language, code=code, **arguments)
        if result["status"] in HONEST_END:
            raise Refused(f"status {result['status']}")
        if result["status"] == "error" and "No space" in result["stderr"]:
            raise Refused("no space left")
        _expect((result["status"], result["stdout"]), ("ok", want), f"output of {code!r}, stderr {result.get('stderr', '')[:200]!r}")
        return result

    # ---- the calls ----

    def prints(self):
        self.program(f"print({self.n} * 7)", f"{self.n * 7}\n")

    def writes_by_bash(self):
        name, word = f"b{self.n}", self.word()
        self.program(f"printf {word} >{name} && cat {name}", word, "bash")
        self.files[name] = (word, None)

    def writes(self):
        name, word = f"f{self.n}", self.word()
        told = self.tool("write_file", filename=name, text=word)
        self.files[name] = (word, told["file"]["url"])

    def reads(self):
        if not self.files:
            return
        name = self.chance.choice(list(self.files))
        try:
            told = self.tool("read_file", filename=name)
        except ToolError as problem:
            if "no such" in problem.text:
                raise Wrong(f"{name} is gone: {problem.text}") from problem
            raise
        _expect(told.get("content"), self.files[name][0], f"content of {name}")

    def downloads(self):
        known = [one for one in self.files.values() if one[1]]
        if not known:
            return
        word, url = self.chance.choice(known)
        answer = self.client.download(url)
        if answer.status in HONEST_STATUS:
            raise Refused(f"HTTP {answer.status} of a file")
        _expect((answer.status, answer.body.decode("utf-8", "replace")), (200, word), "download")

    def keeps_a_variable(self):
        if self.variable is None:
            word = self.word()
            self.program(f"x = {word!r}; print(x)", word + "\n", session=True)
            self.variable = word
            return
        want, self.variable = self.variable, None
        result = self.tool("run_code", language="python", code="print(x)", session=True)
        if result["status"] in HONEST_END or result.get("sessionStarted") or result.get("stateLost"):
            raise Refused(f"session: {result['status']}, its variables are lost")
        _expect(result["stdout"], want + "\n", "the session's variable")
        self.variable = want

    def runs_in_the_background(self):
        word = self.word()
        begun = self.tool("run_code", language="bash", code=f"sleep 0.5; echo {word}", background=True)
        if begun["status"] != "running":
            raise Refused(f"status {begun['status']}")
        try:
            result = self.tool("get_run", runId=begun["runId"], waitMs=20000)
        except ToolError as problem:
            if "notKept" in begun and "no such run" in problem.text:
                raise Refused("a run whose result cannot be kept, as was said") from problem
            raise
        if result["status"] in HONEST_END:
            raise Refused(f"status {result['status']}")
        _expect(result["stdout"], word + "\n", "output of a run in the background")

    def lists_tools(self):
        answer = self.client.request("tools/list")
        if answer.status in HONEST_STATUS:
            raise Refused(f"HTTP {answer.status}")
        found = len(answer.json()["result"]["tools"])
        self.tools = self.tools or found
        _expect(found, self.tools, "number of tools")

    def listens(self):
        """A stream of the hub: its first message, then it is closed."""
        params = {"notifications": {"toolsListChanged": True}}
        stream = streams.open_modern(self.client, "subscriptions/listen", params).begin()
        try:
            if stream.status in HONEST_STATUS:
                raise Refused(f"HTTP {stream.status} of a stream")
            first = stream.next(15)
            if first is None:
                raise Refused("the stream ended before its first message")
            _expect(first.get("method"), "notifications/subscriptions/acknowledged", "first message of a stream")
        finally:
            stream.close()


CALLS = {Caller.prints: 5, Caller.writes_by_bash: 3, Caller.writes: 3, Caller.reads: 4, Caller.downloads: 3,
         Caller.keeps_a_variable: 2, Caller.runs_in_the_background: 2, Caller.lists_tools: 2, Caller.listens: 1}

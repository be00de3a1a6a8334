"""The ways in which a run can begin, and what came of it.

bare        the interpreter by itself, without an entry program (bare.pl): what the others are compared with
cold        the program is there before the interpreter has started
started     the interpreter has started and waits
preloaded   it has brought in the libraries of the image's preload label, too, and waits
preloading  it is at work on that
demanded    the program demands the libraries of that label, which are brought in for it
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import stat
import tempfile
import time
import zlib

import container
import sbx

HERE = pathlib.Path(__file__).resolve().parent
# Where in a preload "preloading" strikes: spread over the programs, the same for each of them every time.
PRELOAD_S = 1.2
PROGRAM_MS = 60000
BARE_COMMANDS = {
    "python": ("/data/.script.py", "python3", "/data/.script.py"),
    "typescript": ("/data/.script.ts", "bun", "run", "--no-install", "/data/.script.ts"),
    "bash": ("/data/.script.sh", "bash", "/data/.script.sh"),
}
# What makes a program a cell of a notebook, and what stands there for the bare interpreter.
NOTEBOOK = ("/usr/local/lib/sandbox/python/program.py", "no_notebook.py")


class Trouble(Exception):
    """The protocol was not kept, or the container did not do what it should."""


@dataclasses.dataclass
class Outcome:
    out: bytes = b""
    err: bytes = b""
    exit: str = ""
    files: dict = dataclasses.field(default_factory=dict)
    begun: str = ""  # what S said: warm, new


def describe_file(path):
    info = os.lstat(path)
    kind = stat.filemode(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return f"{kind} -> {os.readlink(path)}"
    if stat.S_ISREG(info.st_mode):
        data = pathlib.Path(path).read_bytes()
        return f"{kind} {len(data)} {hashlib.sha256(data).hexdigest()[:16]}"
    return kind


def look_at(folder):
    found = {}
    for parent, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(parent, name)
            found[os.path.relpath(path, folder)] = describe_file(path)
    return found


def make_folder(path):
    """One that the container's user may change, under any account of the tests."""
    path.mkdir()
    path.chmod(0o777)


def put_files(program, folder):
    for name, data in program.files.items():
        path = folder / name
        for parent in reversed(path.relative_to(folder).parents[:-1]):
            if not (folder / parent).exists():
                make_folder(folder / parent)
        path.write_bytes(data)
        path.chmod(0o666)
        if os.geteuid() == 0:
            os.chown(path, *container.USER)


def records(program, load=None):
    return sbx.program(program.code, program.stdin or None, program.args, program.env, PROGRAM_MS, load=load)


def collect(frames, outcome, send):
    """Reads up to the report."""
    for tag, number, payload in frames:
        if tag == "R":
            report = json.loads(payload)
            outcome.exit = f"signal {report['signal']}" if report["signal"] else f"exit {report['exitCode']}"
            return
        if (tag, payload) == ("L", b"done"):
            send(sbx.record("G", number))
        elif tag == "O":
            outcome.out += payload
        elif tag == "E":
            outcome.err += payload
        elif tag == "S" and not (outcome.begun or outcome.out or outcome.err):
            outcome.begun = payload.decode()
        elif tag not in "LW" or outcome.begun:
            raise Trouble(f"frame {tag} {payload[:40]!r} at the wrong time")
    raise Trouble("the stream ended without a report")


def await_word(frames, word):
    for tag, _, payload in frames:
        if tag != "W":
            raise Trouble(f"frame {tag} {payload[:40]!r} before the program was there")
        if sbx.tier_of(payload) == word:
            return
    raise Trouble(f"the stream ended before it said {word}")


def without_itself(listing):
    """What a program prints that lists /data: the bare interpreter's is among its files."""
    for itself in (b"'.script.py', ", b", '.script.py'", b"'.script.py'"):
        listing = listing.replace(itself, b"")
    return listing


class Bare:
    """The bare interpreter's container, for one program after another."""

    def __init__(self, language):
        self.folder = tempfile.TemporaryDirectory(prefix="compare-", ignore_cleanup_errors=True)
        self.data = pathlib.Path(self.folder.name, "data")
        make_folder(self.data)
        os.chmod(self.folder.name, 0o755)
        command = ["perl", "/bare.pl", *BARE_COMMANDS[language]]
        place, plain = NOTEBOOK
        self.container = container.Container(language, self.data, command, [f"{HERE}/bare.pl:/bare.pl:ro", f"{HERE}/{plain}:{place}:ro"])
        self.frames = self.container.frames()
        self.make_ready()

    def make_ready(self):
        self.container.send(sbx.record("N", 0))
        await_word(self.frames, "started")

    def run(self, program):
        outcome = Outcome()
        put_files(program, self.data)
        self.container.send(records(program))
        collect(self.frames, outcome, self.container.send)
        outcome.out = without_itself(outcome.out)
        outcome.files = look_at(self.data)
        self.make_ready()
        return outcome

    def close(self):
        self.container.close()
        self.folder.cleanup()


def begin(way, program, preload, frames, send, prepare):
    """Brings the container to where the way begins, then hands the program over."""
    if way in ("preloaded", "preloading"):
        await_word(frames, "started")
        send(sbx.preload(preload))
    if way == "preloading":
        time.sleep(PRELOAD_S * (zlib.crc32(program.name.encode()) % 997) / 997)
    elif way != "cold":
        await_word(frames, "started" if way == "demanded" else way)
    prepare()
    send(records(program, preload if way == "demanded" else None))


def run(way, program, preload):
    """Runs the program in a container of its own. With preloaded its files lie in /data from the beginning, as those of a known
    conversation do; otherwise /data is an empty folder that gets its name and its files when the program comes."""
    with tempfile.TemporaryDirectory(prefix="compare-", ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o755)
        pool, data = pathlib.Path(scratch, "pool"), pathlib.Path(scratch, "data")
        make_folder(pool)
        if way == "preloaded":
            put_files(program, pool)

        def prepare():
            pool.rename(data)
            if way != "preloaded":
                put_files(program, data)

        outcome = Outcome()
        one = container.Container(program.language, pool)
        try:
            frames = one.frames()
            begin(way, program, preload, frames, one.send, prepare)
            collect(frames, outcome, one.send)
            outcome.files = look_at(data)
        except (Trouble, OSError) as trouble:
            raise Trouble(f"{trouble}; {one.last_words()}") from None
        finally:
            one.close()
        return outcome

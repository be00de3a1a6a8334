"""The server's side of sandbox.protocol=2 and 3, for tests: makes records, takes frames apart."""

import json
import os
import struct
import subprocess
import threading


PART = 65536
RUN = 1  # the id of a container's only run


def as_bytes(text):
    return text.encode() if isinstance(text, str) else bytes(text)


def record(tag, number, payload=b""):
    payload = as_bytes(payload)
    return tag.encode() + struct.pack(">II", 4 + len(payload), number) + payload


def records(tag, number, data):
    """As many as data needs, at least one."""
    data = as_bytes(data)
    return b"".join(record(tag, number, data[i:i + PART]) for i in range(0, len(data) or 1, PART))


def items(*argv, env=(), cwd=None, timeout_ms=None, control=False, load=None):
    parts = [("T", str(timeout_ms))] if timeout_ms is not None else []
    parts += [("D", cwd)] if cwd is not None else []
    parts += [("K", "")] if control else []
    parts += [("L", load)] if load is not None else []
    parts += [("E", e) for e in env] + [("A", a) for a in argv]
    return b"".join(letter.encode() + as_bytes(text) + b"\0" for letter, text in parts)


def program(code, stdin=None, args=(), env=(), deadline_ms=None, go=True, number=RUN, load=None):
    """The records of a run."""
    data = records("C", number, code)
    if stdin is not None:
        data += records("I", number, stdin)
    return data + (record("X", number, items(*args, env=env, timeout_ms=deadline_ms, load=load)) if go else b"")


def preload(names):
    return record("P", 0, names)


class Result:
    """What came out: both streams, (tag, length) of every frame of theirs, what it said of loading libraries, how far the interpreter had come, how the
    program started, the report or why there is none, the exit status and the entry's own words."""

    def __init__(self):
        self.out = bytearray()
        self.err = bytearray()
        self.frames = []
        self.loads = []
        self.waited = []
        self.started = None
        self.report = None
        self.why = None
        self.exit = None
        self.said = b""


def read_exactly(f, n):
    data = bytearray()
    while len(data) < n:
        part = f.read(n - len(data))
        if not part:
            break
        data += part
    return bytes(data)


def frames(f):
    """Yields (tag, id, payload); raises when the stream is not made of whole frames."""
    while True:
        head = read_exactly(f, 5)
        if not head:
            return
        if len(head) != 5:
            raise AssertionError(f"half a frame head: {head!r}")
        size = struct.unpack(">I", head[1:])[0]
        if not 4 <= size <= 4 + PART:
            raise AssertionError(f"frame of {size} bytes")
        payload = read_exactly(f, size)
        if len(payload) != size:
            raise AssertionError("half a frame")
        yield head[:1].decode(), struct.unpack(">I", payload[:4])[0], payload[4:]


def tier_of(payload):
    """The tier of a warm container in a frame W; its bytes of memory may follow."""
    return payload.decode().split(" ")[0]


def read_tier(stream):
    """What the next frame of frames() says, which must be a W."""
    tag, number, payload = next(stream)
    assert (tag, number) == ("W", 0), f"frame {tag} {payload[:40]!r} where W was due"
    return tier_of(payload)


def start(command, data):
    """Starts command, gives it data, and leaves its stdin open."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def feed():
        try:
            p.stdin.write(data)
            p.stdin.flush()
        except BrokenPipeError:
            pass

    p.feeder = threading.Thread(target=feed, daemon=True)
    p.feeder.start()
    return p


def hang_up(p):
    """The entry program ends then."""
    p.feeder.join(timeout=60)
    try:
        p.stdin.close()
    except BrokenPipeError:
        pass


def collect(p, keep=True, on_frame=None):
    """Reads to the end of the run, and then of the container; keep=False drops the payloads."""
    r = Result()
    for tag, number, payload in frames(p.stdout):
        assert r.report is None and r.why is None, f"frame {tag} after the last"
        if tag == "W":
            assert number == 0 and not r.started, "a wait behind the start"
            r.waited.append(tier_of(payload))
            continue
        assert number == RUN, f"frame {tag} of {number}"
        if tag == "L":
            assert not r.started, "libraries for a program that goes"
            r.loads.append(payload.decode())
            if payload == b"done":
                p.stdin.write(record("G", number))
                p.stdin.flush()
            continue
        if tag == "S":
            assert not (r.started or r.frames), "a second start, or a late one"
            r.started = payload.decode()
            continue
        r.frames.append((tag, len(payload)))
        if tag == "R":
            r.report = json.loads(payload)
        elif tag == "F":
            r.why = payload
        elif tag == "O" and keep:
            r.out += payload
        elif tag == "E" and keep:
            r.err += payload
        else:
            assert tag in "OE", f"frame {tag!r}"
        if tag in "RF":
            hang_up(p)
        if on_frame:
            on_frame(tag, payload)
    r.exit = p.wait(timeout=60)
    r.said = p.stderr.read()
    hang_up(p)
    p.stdout.close()
    p.stderr.close()
    return r


def run(command, data, **options):
    return collect(start(command, data), **options)


def alive(marker):
    """Processes of this machine whose command line contains marker, without ourselves."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found

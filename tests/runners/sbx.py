"""The server's side of sandbox.protocol=1, for tests: makes envelopes, takes frames apart."""

import json
import os
import struct
import subprocess
import threading


def record(tag, payload=b""):
    if isinstance(payload, str):
        payload = payload.encode()
    return tag.encode() + struct.pack(">I", len(payload)) + payload


MAGIC = b"SBX1"


def envelope(code, stdin=None, args=(), env=(), deadline_ms=None, go=True, magic=MAGIC):
    parts = [magic, record("C", code)]
    if stdin is not None:
        parts.append(record("I", stdin))
    parts += [record("A", a) for a in args]
    parts += [record("E", e) for e in env]
    if deadline_ms is not None:
        parts.append(record("T", str(deadline_ms)))
    if go:
        parts.append(record("G"))
    return b"".join(parts)


class Result:
    """What came out: both streams, (tag, length) of every frame of theirs, how far the interpreter had come, how the
    program started, the report, the exit status and the entry's own words."""

    def __init__(self):
        self.out = bytearray()
        self.err = bytearray()
        self.frames = []
        self.waited = []
        self.started = None
        self.report = None
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
    """Yields (tag, payload); raises when the stream is not made of whole frames."""
    while True:
        head = read_exactly(f, 5)
        if not head:
            return
        if len(head) != 5:
            raise AssertionError(f"half a frame head: {head!r}")
        size = struct.unpack(">I", head[1:])[0]
        if size > 65536:
            raise AssertionError(f"frame of {size} bytes")
        payload = read_exactly(f, size)
        if len(payload) != size:
            raise AssertionError("half a frame")
        yield head[:1].decode(), payload


def tier_of(payload):
    """The tier of a warm container in a frame W; its bytes of memory may follow."""
    return payload.decode().split(" ")[0]


def read_tier(stream):
    """What the next frame of frames() says, which must be a W."""
    tag, payload = next(stream)
    assert tag == "W", f"frame {tag} {payload[:40]!r} where W was due"
    return tier_of(payload)


def start(command, data):
    """Starts command, gives it the envelope, and leaves its stdin open."""
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
    """With the report in hand: the entry program waits for this before it goes."""
    p.feeder.join(timeout=60)
    try:
        p.stdin.close()
    except BrokenPipeError:
        pass


def collect(p, keep=True, on_frame=None):
    """Reads to the end; keep=False drops the payloads."""
    r = Result()
    for tag, payload in frames(p.stdout):
        if r.report is not None:
            raise AssertionError(f"frame {tag} after the report")
        if tag == "W":
            if r.started:
                raise AssertionError("a wait behind the start")
            r.waited.append(tier_of(payload))
            continue
        if tag == "S":
            if r.started or r.frames:
                raise AssertionError("a second start, or a late one")
            r.started = payload.decode()
            continue
        r.frames.append((tag, len(payload)))
        if tag == "R":
            r.report = json.loads(payload)
            hang_up(p)
        elif tag == "O" and keep:
            r.out += payload
        elif tag == "E" and keep:
            r.err += payload
        elif tag not in "OE":
            raise AssertionError(f"frame {tag!r}")
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

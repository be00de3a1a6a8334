"""A container that takes any number of commands, for tests."""

import json
import os
import queue
import subprocess
import threading

import sbx


class End:
    """What a command came to."""

    def __init__(self):
        self.out = bytearray()
        self.err = bytearray()
        self.control = bytearray()
        self.report = None
        self.why = None
        self.started = None
        self.order = []

    @property
    def over(self):
        return self.report is not None or self.why is not None


class Psandbox:
    """An entry program in the mode "serve", with a thread that takes its frames in."""

    def __init__(self, command, holds=False, **options):
        self.holds = holds  # programs whose libraries are there, until go()
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.frames = queue.Queue(maxsize=256)
        self.ends = {}
        self.last = 0
        self.reading = threading.Event()
        self.reading.set()
        threading.Thread(target=self.read, daemon=True).start()
        tag, number, tier = self.frames.get(timeout=60)
        assert (tag, number, sbx.tier_of(tier)) == ("W", 0, "started")

    def read(self):
        for frame in sbx.frames(self.p.stdout):
            self.frames.put(frame)
            self.reading.wait()
        self.frames.put(None)

    def send(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def begin(self, *argv, code=None, language=None, stdin=b"", **wanted):
        """Starts a command, or with code a run; its number."""
        self.last += 1
        self.ends[self.last] = End()
        if language is not None:
            self.send(sbx.record("B", self.last, language))
        if code is not None:
            self.send(sbx.records("C", self.last, code))
        self.send(sbx.records("I", self.last, stdin) + sbx.record("X", self.last, sbx.items(*argv, **wanted)))
        return self.last

    def next(self, tier="started"):
        """Asks for the container as it was before the run, which waits so far then: None, or why it is not."""
        self.send(sbx.record("N", 0))
        tag, number, data = self.frames.get(timeout=60)
        assert number == 0 and (tag == "F" or sbx.tier_of(data) == tier), (tag, number, data)
        return data.decode() if tag == "F" else None

    def await_template(self):
        """That of a language that has had its first run."""
        tag, number, _ = self.frames.get(timeout=60)
        assert (tag, number) == ("W", 0), tag

    def go(self, number):
        self.send(sbx.record("G", number))

    def kill(self, number):
        self.send(sbx.record("Z", number))

    def tell(self, number, data):
        self.send(sbx.record("K", number, data))

    def turn(self, timeout=60):
        """Takes one frame in; its tag, number and payload."""
        frame = self.frames.get(timeout=timeout)
        if frame is None:
            self.frames.put(None)  # for close()
            raise EOFError
        tag, number, data = frame
        if tag == "W":  # again, with the memory of a template that has come
            return frame
        end = self.ends[number]
        assert not end.over, "a frame after the last"
        end.order.append(tag)
        if tag == "O":
            end.out += data
        elif tag == "E":
            end.err += data
        elif tag == "K":
            end.control += data
        elif tag == "R":
            end.report = json.loads(data)
        elif tag == "F":
            end.why = data.decode()
        elif tag == "L":
            if data == b"done" and not self.holds:
                self.go(number)
        else:
            assert tag == "S", f"frame {tag!r}"
            end.started = data.decode()
        return frame

    def until(self, condition, timeout=60):
        while not condition():
            self.turn(timeout)

    def end(self, number, timeout=60):
        self.until(lambda: self.ends[number].over, timeout)
        return self.ends.pop(number)

    def run(self, *argv, **wanted):
        return self.end(self.begin(*argv, **wanted))

    def sh(self, code, **wanted):
        return self.run("sh", "-c", code, **wanted)

    def entry_pid(self):
        """The entry program's pid as we see it: our child, or the child of unshare."""
        below = children(self.p.pid)
        with open(f"/proc/{self.p.pid}/comm") as f:
            return int(below[0]) if f.read() != "entry\n" and below else self.p.pid

    def close(self):
        """Hangs up; the exit status and what it said."""
        self.reading.set()
        try:
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        while True:
            try:
                if self.frames.get(timeout=60) is None:
                    break
            except queue.Empty:
                break
        status = self.p.wait(timeout=60)
        said = self.p.stderr.read()
        self.p.stdout.close()
        self.p.stderr.close()
        return status, said


def memory_kb(pid, name="VmHWM"):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()

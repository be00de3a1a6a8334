"""Which tests execute which lines: each test is run once without a fault, in programs that note the basic blocks they come by (reached.c)."""
import bisect
import hashlib
import json
import os
import re
import subprocess
import sys

from scratch import read, tree_files, TOP, FOLDERS

MAP_BYTES = 64 << 20  # sparse; more than the text of any program
CALL = re.compile(r"^ *([0-9a-f]+):.*\bcall", re.M)


def lines_at(program, addresses, section=None):
    """{(path, line)} of the addresses of a program, or of a section of an object. Paths are as the compiler was given them."""
    if not addresses:
        return set()
    done = subprocess.run(["addr2line", *(["-j", section] if section else []), "-e", program], input="\n".join(map(hex, addresses)),
                          capture_output=True, text=True, check=False)
    places = (place.partition(" ")[0].rpartition(":") for place in done.stdout.splitlines())
    return {(path, int(line)) for path, _, line in places if line.isdigit()}


def blocks_of(obj):
    """{(path, line)} at which the basic blocks of an object begin: there it calls what notes them."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", obj], capture_output=True, text=True, check=False).stdout.splitlines()
    calls, section = {}, ""
    for line, after in zip(text, text[1:]):
        if line.startswith("Disassembly of section "):
            section = line.split()[3].rstrip(":")
        if "__sanitizer_cov_trace_pc" in after and (found := CALL.match(line)):
            calls.setdefault(section, []).append(int(found.group(1), 16))
    return set().union(*(lines_at(obj, addresses, section) for section, addresses in calls.items()))


def relative(path):
    """To the tree: the compiler works in build/."""
    return os.path.normpath("build/" + path.rpartition("/build/")[2])


def function_of(text, number):
    """(first, last) line of the body that the line is in, by the braces in the first column; None: it is in none."""
    lines = text.split("\n")
    first = next((n for n in range(number, 0, -1) if lines[n - 1][:1] in ("{", "}")), 0)
    last = next((n for n in range(number, len(lines) + 1) if lines[n - 1].startswith("}")), 0)
    return (first, last) if first and last and lines[first - 1].startswith("{") else None


class Reach:
    """run: what runs a test and returns a Done."""

    def __init__(self, scratch, run):
        self.scratch, self.run = scratch, run
        self.path = f"{scratch.cache}/reached.json"
        self.folder = f"{scratch.build}/reached"
        os.makedirs(self.folder, exist_ok=True)
        self.product = self.digest(path for path in tree_files() if path.split("/")[0] in FOLDERS)
        try:
            with open(self.path, encoding="utf-8") as file:
                self.known = json.load(file)
        except (OSError, ValueError):
            self.known = {}

    @staticmethod
    def digest(paths):
        found = hashlib.sha256()
        for path in paths:
            if os.path.isfile(f"{TOP}/{path}"):
                with open(f"{TOP}/{path}", "rb") as file:
                    found.update(path.encode() + b"\0" + hashlib.sha256(file.read()).digest())
        return found.hexdigest()

    # ---- measuring ----

    def measure(self, tests):
        """What is known of a test stays as long as the product and its source are the same."""
        wanted = {}
        for test in tests:
            key = self.digest([test.source]) + self.product
            if self.known.get(test.name, {}).get("key") != key:
                wanted[test.name] = (test, key)
        for number, (test, key) in enumerate(wanted.values(), 1):
            self.known[test.name] = self.look(test) | {"key": key}
            seconds = self.known[test.name]["seconds"]
            print(f"what it executes: {number} of {len(wanted)}, {test.name}"
                  + (f", {seconds:.1f} s" if seconds is not None else " fails without a fault, and is not used: " + self.known[test.name]["why"]), flush=True)
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump(self.known, file)
            os.replace(self.path + ".new", self.path)

    def look(self, test):
        programs = [f"{self.scratch.build}/{one}" for one in test.executes]
        for program in programs:
            with open(self.map_of(program), "wb") as file:
                file.truncate(MAP_BYTES)
            os.chmod(file.name, 0o666)
        try:
            done = self.run(test)
            places = set().union(*(lines_at(program, self.addresses(program)) for program in programs))
        finally:
            for program in programs:
                os.unlink(self.map_of(program))
        lines = {}
        for path, line in places:
            path = relative(path)
            if path.split("/")[0] in FOLDERS:
                lines.setdefault(path, []).append(line)
        return {"seconds": done.seconds if done.ok else None, "why": "" if done.ok else done.text[-300:], "lines": lines}

    def map_of(self, program):
        return f"{self.folder}/{program.replace('/', '%')}"

    def addresses(self, program):
        """Of the calls: the byte before where they return to."""
        found = []
        with open(self.map_of(program), "rb") as file:
            at = 0
            while True:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    return found
                for offset, byte in enumerate(os.pread(file.fileno(), 65536, at)):
                    if byte:
                        found.append(at + offset - 1)
                at += 65536

    # ---- asking ----

    def seconds(self, test):
        """None: it fails without a fault, too, or was not asked for."""
        return self.known.get(test.name, {}).get("seconds")

    def fastest(self, tests):
        """Those that are of use."""
        return sorted((test for test in tests if self.seconds(test) is not None), key=self.seconds)

    def tests_for(self, path, number, objects, tests):
        """Those that execute the line's block, the fastest first, then others of its function, since a compiler moves things; what is
        no part of a function is taken for the whole file."""
        body = function_of(read(f"{self.scratch.tree}/{path}"), number)
        first, last = body or (0, sys.maxsize)
        blocks = sorted({line for obj in objects for at, line in blocks_of(obj) if relative(at) == path and first <= line <= last})
        block = blocks[max(0, bisect.bisect_right(blocks, number) - 1)] if blocks else None

        def lines(test):
            return self.known.get(test.name, {}).get("lines", {}).get(path, [])
        near = self.fastest(test for test in tests if block in lines(test)) if body else []
        return near + [test for test in self.fastest(tests) if test not in near and any(first <= line <= last for line in lines(test))]

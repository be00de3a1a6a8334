"""Which tests could see a fault in a file: the nearest first."""
import glob
import os
import re
import subprocess

import faults
from scratch import read

UNIT, OTHERS, FUZZ, SCRIPTS, E2E = "unit tests of the folder", "unit tests of others", "fuzz seeds", "scripts of the folder", "end-to-end core"
STEPS = {"unit": (UNIT, OTHERS, FUZZ), "scripts": (SCRIPTS,), "e2e": (E2E,)}
E2E_SECONDS = 1800
SECONDS = 60  # of a test that is not known yet
WHOLE_SECONDS = 600
NEAREST_MAX = 3
SYMBOL = re.compile(r" [TDBRV] (\w+)$", re.M)


class Test:
    """targets: what make has to make for it; tmp: its /tmp, None: one of its own."""

    def __init__(self, name, step, command, targets, seconds=SECONDS, tmp=None):
        self.name, self.step, self.command, self.targets, self.seconds, self.tmp = name, step, command, targets, seconds, tmp

    def narrowed(self, text):
        """Only the test of a folder's program that text says has failed."""
        found = re.search(r"^FAILED (\S+/\S+ \S+) \(", text, re.M)
        return Test(found.group(1), self.step, [self.command[0], found.group(1)], self.targets) if found and self.command[0].endswith("/unit") else self


def objects_of(build, path):
    """The objects that are made of a C file."""
    folder, stem = os.path.dirname(path), os.path.basename(path)[:-2]
    return [one for one in glob.glob(f"{build}/{folder}/*{stem}.o")
            if os.path.basename(one) == f"{stem}.o" or os.path.basename(one).endswith(f"-{stem}.o") and "tests_" not in one]


def symbols(path):
    done = subprocess.run(["nm", "-g", "--defined-only", path], capture_output=True, text=True, check=False)
    return set(SYMBOL.findall(done.stdout)) - {"main"}


class Tests:
    def __init__(self, scratch):
        self.scratch = scratch
        self.programs = scratch.variable("TEST_TARGETS")
        self.scripts = [one for one in scratch.variable("dist_check_SCRIPTS") if one.startswith("tests/runners/")]
        self.linked = {}

    def for_fault(self, fault):
        """Yields all that could see it; the end-to-end core last."""
        top = fault.path.split("/")[0]
        if top == "nginx":
            yield from self.of_nginx(fault.path)
        elif top == "runners":
            yield from self.of_runners(fault.path)
        else:
            yield from self.of_product(fault.path)
        if not needs_image(fault.path):
            yield self.end_to_end()

    def of_product(self, path):
        """Of the folder's files those come first that call most of what the file defines."""
        folder = path.split("/")[1] if path.startswith("common/") else "fcgi"
        own = f"tests/unit/{folder}/unit"
        defined = set().union(*(symbols(one) for one in objects_of(self.scratch.build, path)))
        if own in self.programs:
            for file in self.nearest(own, defined):
                yield Test(f"{os.path.dirname(own)}/{file}", UNIT, [f"./{own}", f"{folder}/{file} "], self.targets(own))
            yield self.whole(own, UNIT)
        others = [one for one in self.programs if one != own and (not path.endswith(".c") or defined & self.symbols_of(one))]
        for program in sorted(others, key=lambda one: not one.startswith("tests/fuzz/")):
            yield self.whole(program, FUZZ if program.startswith("tests/fuzz/") else OTHERS)

    def symbols_of(self, program):
        path = f"{self.scratch.build}/{program}"
        if program not in self.linked:
            if not os.path.exists(path):
                self.scratch.make(program)
            self.linked[program] = symbols(path)
        return self.linked[program]

    def files(self, program):
        """(name, words) of the files of tests of a folder's program."""
        folder = f"{self.scratch.tree}/{os.path.dirname(program)}"
        for path in sorted(glob.glob(f"{folder}/test_*.c")):
            yield os.path.basename(path)[:-2], re.findall(r"\w+", read(path))

    def nearest(self, program, names):
        called = {name: sum(1 for word in words if word in names) for name, words in self.files(program)}
        return sorted((name for name, n in called.items() if n > 0), key=lambda name: -called[name])[:NEAREST_MAX]

    def targets(self, program):
        """Some files execute sandcgi, which lies in builddir."""
        return [program, *(["sandcgi"] if any("builddir" in words for _, words in self.files(program)) else [])]

    def whole(self, program, step):
        return Test(program, step, [f"./{program}"], self.targets(program), WHOLE_SECONDS)

    def of_nginx(self, path):
        names = ["tests/nginx/run.py", "tests/nginx/test_start.sh"]
        return [Test(one, SCRIPTS, [f"{self.scratch.tree}/{one}"], ["sandcgi"], 600)
                for one in (reversed(names) if path.startswith("nginx/setup/") else names)]

    def of_runners(self, path):
        """Scripts that run a file directly name it."""
        made = ["runners/common/entry", "runners/warm/warm.so"]
        entry = path.startswith(("runners/common/", "runners/warm/"))
        return [Test(one, SCRIPTS, [f"{self.scratch.tree}/{one}"], made, 600) for one in self.scripts
                if entry or os.path.basename(path) in read(f"{self.scratch.tree}/{one}")]

    def end_to_end(self):
        run = f"{self.scratch.tree}/tests/e2e/run.py"
        return Test("tests/e2e/run.py --core", E2E, [run, "--core", "--stop", "--jobs", "2"], ["all"], E2E_SECONDS, "/tmp")  # which the engine knows


def needs_image(path):
    """What the end-to-end core takes from an image that was made before."""
    return path.startswith("runners/") and path != "runners/build.sh"


# ---- does it compile, and to something else? ----

CONSTRAINTS = ("incompatible-pointer-types", "int-conversion", "discarded-qualifiers")


def compiled(scratch, flags, path):
    """What the compiler makes of the file; None: it is no program, by the rules of the language."""
    full = f"{scratch.tree}/{path}"
    name = faults.language(path, read(full))
    commands = {"c": ["gcc", "-std=gnu17", "-O2", "-S", "-o", "-", *flags, *(f"-Werror={one}" for one in CONSTRAINTS), full],
                "shell": ["bash", "-n", full], "python": ["python3", "-c", "import sys; compile(open(sys.argv[1]).read(), '', 'exec')", full],
                "script": ["node", "--check", full]}
    if name not in commands:
        return read(full)
    done = subprocess.run(commands[name], cwd=scratch.build, capture_output=True, text=True, check=False)
    return None if done.returncode != 0 else done.stdout if name == "c" else read(full)

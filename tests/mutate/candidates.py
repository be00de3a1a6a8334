"""Which tests could see a fault in a file: the nearest first."""
import glob
import os
import re
import subprocess

import faults
from scratch import read

ORDER = UNIT, FUZZ, SCRIPTS, E2E = "unit tests", "fuzz seeds", "scripts of the folder", "end-to-end core"
STEPS = {"unit": (UNIT, FUZZ), "scripts": (SCRIPTS,), "e2e": (E2E,)}


class Test:
    """source: the file that has it; executes: programs of ours in it; targets: what make has to make for it; tmp: its /tmp, None: one of its own."""

    def __init__(self, name, step, command, targets, source, executes=(), tmp=None):
        self.name, self.step, self.command, self.targets, self.source, self.executes, self.tmp = name, step, command, targets, source, executes, tmp

    def narrowed(self, text):
        """Only the test of a folder's program that text says has failed."""
        found = re.search(r"^FAILED (\S+/\S+ \S+) \(", text, re.M)
        return Test(self.name, self.step, [self.command[0], found.group(1)], self.targets, self.source) if found and self.step in STEPS["unit"] else self


def objects_of(build, path):
    """The objects that are made of a C file."""
    folder, stem = os.path.dirname(path), os.path.basename(path)[:-2]
    return [one for one in glob.glob(f"{build}/{folder}/*{stem}.o")
            if os.path.basename(one) == f"{stem}.o" or os.path.basename(one).endswith(f"-{stem}.o") and "tests_" not in one]


class Tests:
    def __init__(self, scratch, found_out):
        self.scratch, self.reach = scratch, found_out
        programs = scratch.variable("TEST_TARGETS")
        scratch.must(scratch.make(*programs))
        self.units = [test for program in programs for test in self.of_program(program)]
        self.modules = list(self.end_to_end_modules())
        self.runners = [self.script(one, "runners/common/entry", "runners/warm/warm.so") for one in scratch.variable("dist_check_SCRIPTS")
                        if one.startswith("tests/runners/")]
        self.nginx = [self.script(one, "sandcgi") for one in ("tests/nginx/run.py", "tests/nginx/test_start.sh")]

    def all(self):
        return self.units + self.runners + self.nginx + self.modules

    def for_fault(self, fault):
        """Those that could see it, in the order of their steps; of a step the nearest first."""
        top = fault.path.split("/")[0]
        if top == "nginx":
            return self.reach.fastest(self.nginx) + self.reach.fastest(self.modules)
        if top == "runners":
            return self.reach.fastest(self.of_runners(fault.path))
        if not fault.path.endswith(".c"):
            return []
        tests = self.reach.tests_for(fault.path, fault.number, objects_of(self.scratch.build, fault.path), self.units + self.modules)
        return sorted(tests, key=lambda test: ORDER.index(test.step))

    def of_program(self, program):
        """The tests of a folder's program, a file each."""
        folder = os.path.dirname(program)
        listed = self.scratch.run([f"./{program}", "--list"], 60).text.splitlines()
        programs = [program, *(["sandcgi"] if any("builddir" in read(path) for path in glob.glob(f"{self.scratch.tree}/{folder}/*.[ch]")) else [])]
        for name in dict.fromkeys(line.split()[0] for line in listed if "/" in line.split()[0]):
            yield Test(name, FUZZ if folder == "tests/fuzz" else UNIT, [f"./{program}", f"{name} "], programs, f"{folder}/{name.split('/')[1]}.c", programs)

    def script(self, path, *targets):
        return Test(path, SCRIPTS, [f"{self.scratch.tree}/{path}"], targets, path)

    def of_runners(self, path):
        """Scripts that run a file directly name it."""
        entry = path.startswith(("runners/common/", "runners/warm/"))
        return [one for one in self.runners if entry or os.path.basename(path) in read(f"{self.scratch.tree}/{one.source}")]

    def end_to_end_modules(self):
        run = f"{self.scratch.tree}/tests/e2e/run.py"
        listed = self.scratch.run([run, "--core", "--list"], 60).text.splitlines()
        for module in dict.fromkeys(line.partition(":")[0] for line in listed if re.match(r"[a-z_]+: ", line)):
            yield Test(f"e2e {module}", E2E, [run, "--core", "--only", module, "--stop"], ["all"], f"tests/e2e/test_{module}.py", ["sandcgi"],
                       "/tmp")  # which the engine knows


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

#!/usr/bin/env python3
"""Runs that follow one another in a container, wiped and proved in between. No engine is needed: containers.py."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import containers  # noqa: E402
import psandboxes  # noqa: E402
import report  # noqa: E402
import sbx  # noqa: E402
import test_entry as base  # noqa: E402
from survivors import ATTACKERS, PROBE, TOOLS  # noqa: E402

IMAGE = (base.ENTRY, base.find_built("WARM", "runners/warm/warm.so"), HERE / "hook.py", base.TOP / "runners/workbench/python/warm.py")
SITECUSTOMIZE = """
import os
if "SANDBOX_HOOK" in os.environ:
    exec(open("/image/warm.py").read(), {"__name__": "warm", "add_packages": int})
"""
NO_LIMIT = "runs out of memory"  # there is none of memory here
# Where the system has an interpreter for the programs.
SHELLS = {"python": "python3", "bash": "bash"}


def containers_are_possible():
    with tempfile.TemporaryDirectory() as folder:
        return containers.possible(folder)


CONTAINERS = containers_are_possible()


@unittest.skipUnless(CONTAINERS, "no containers here")
class Case(unittest.TestCase):
    """Runs follow one another in a container."""

    def open(self, *arguments, languages=None, env=(), ends=(0, b""), **options):
        """Its runs are commands with /tmp/script as an argument of theirs, unless arguments says otherwise. languages: of each
        the lines of its file; the first one is the first."""
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        image = pathlib.Path(folder.name, "image")
        image.mkdir()
        for file in IMAGE:
            shutil.copy(file, image)
        image.joinpath("sitecustomize.py").write_text(SITECUSTOMIZE)
        if languages:
            image.joinpath("languages").mkdir()
            for name, lines in languages.items():
                image.joinpath("languages", name).write_text("\n".join(lines))
            arguments = ("-L", "/image/languages", "-F", next(iter(languages)))
        container = psandboxes.Psandbox(containers.command(folder.name, *(arguments or ("/tmp/script", "env")), env=env), **options)
        self.addCleanup(lambda: self.assertEqual(container.close(), ends))
        return container

    def open_python(self):
        """With a template, as the Python runner; its Python is the system's."""
        return self.open("-w", "-t", "-l", "/image/warm.so", "-x", "SANDBOX_HOOK=3", "/tmp/script", "/usr/bin/python3", "/tmp/script",
                         env=["PYTHONPATH=/image"])

    def open_template(self, **options):
        """With one that loads what it is told to (hook.py)."""
        return self.open("-w", "-t", "-m", "os", "/tmp/script", "python3", "/image/hook.py", "/tmp/script", env=["HOOK_TEMPLATE=1"], **options)

    def run_sh(self, container, code, *args, **options):
        return container.run("sh", "/tmp/script", *args, code=code, **options)


class Next(Case):
    def test_runs_follow_one_another(self):
        container = self.open()
        for n in range(1, 4):
            end = self.run_sh(container, 'echo "$1 $(cat)"; exit $1', str(n), stdin=str(n))
            self.assertEqual((bytes(end.out), end.report["exitCode"], end.order), (f"{n} {n}\n".encode(), n, ["S", "O", "R"]))
            self.assertIsNone(container.next())

    def test_each_run_has_an_interpreter_of_its_own_that_waited(self):
        container = self.open("-w", "/tmp/script", "python3", "/image/hook.py", "/tmp/script")
        pids = set()
        for n in range(3):
            end = container.run(code="echo $WAY $$ $(cat)", stdin=str(n))
            way, pid, stdin = bytes(end.out).split()
            self.assertEqual((way, stdin), (b"warm", str(n).encode()))
            pids.add(pid)
            self.assertIsNone(container.next())
        self.assertEqual(len(pids), 3)

    def test_what_a_run_has_demanded_is_there_for_those_that_follow(self):
        container = self.open_template()
        seen = []
        for load in ("a0", "a0", None, "b0", "a0 b0"):
            code = f": <<END\nimport {'a' if load else 'os'}\nEND\necho $WAY $DEMANDED"
            seen.append(bytes(container.run(code=code, load=load).out))
            self.assertIsNone(container.next("preloaded"))
        self.assertEqual(seen, [b"warm a0\n", b"warm a0\n", b"warm\n", b"warm a0b0\n", b"warm a0b0\n"])

    def test_libraries_may_be_loaded_ahead_after_a_run(self):
        container = self.open_template()
        container.run(code=": <<END\nimport os\nEND\n")
        self.assertIsNone(container.next())
        container.send(sbx.preload("a0 b0"))
        self.assertEqual(sbx.tier_of(container.frames.get(timeout=60)[2]), "preloaded")
        end = container.run(code=": <<END\nimport a\nEND\necho $WAY $LOADED")
        self.assertEqual(bytes(end.out), b"warm loaded\n")
        self.assertIsNone(container.next("preloaded"))

    def test_a_program_is_held_until_it_may_begin(self):
        container = self.open_template(holds=True)
        for n in range(2):
            number = container.begin(code=": <<END\nimport a\nEND\necho $WAY $DEMANDED", load=f"a{n}")
            container.until(lambda number=number: len(container.ends[number].order) == 2)
            self.assertEqual(container.sh("exit 3").report["exitCode"], 3)
            self.assertEqual(container.ends[number].order, ["L", "L"])
            container.go(number)
            container.go(number)  # which is too late, and nothing
            end = container.end(number)
            self.assertEqual((bytes(end.out), "".join(end.order)), (f"warm {'a0a1'[:2 * n + 2]}\n".encode(), "LLSOR"))
            self.assertIsNone(container.next("preloaded"))

    def test_killed_while_it_is_held_it_never_begins(self):
        container = self.open_template(holds=True)
        number = container.begin(code=": <<END\nimport a\nEND\necho $WAY", load="a0")
        container.until(lambda: len(container.ends[number].order) == 2)
        container.kill(number)
        container.go(number)
        end = container.end(number)
        self.assertEqual((bytes(end.out), end.report["signal"], end.order), (b"", 9, ["L", "L", "R"]))

    def test_at_a_wrong_moment_it_is_a_bad_record(self):
        code, go = sbx.record("C", 1, "sleep 5"), sbx.record("X", 1, sbx.items("sh", "/tmp/script"))
        n = sbx.record("N", 0)
        moments = {"before a run": n, "while its code comes": code + n, "while it goes": code + go + n,
                   "with an id": sbx.record("N", 1)}
        for moment, data in moments.items():
            with self.subTest(moment):
                container = self.open(ends=(125, b"entry: bad record\n"))
                container.send(data)
        for moment, data in {"a run without it": sbx.record("C", 2, "x"), "twice": n + n}.items():
            with self.subTest(moment):
                container = self.open(ends=(125, b"entry: bad record\n"))
                self.run_sh(container, "true")
                container.send(data)

    def test_nothing_grows_with_the_number_of_runs(self):
        container = self.open()
        entry = container.entry_pid()
        seen = []
        for n in range(1000):
            end = self.run_sh(container, 'echo $1 >/tmp/file; mkdir -p /tmp/a/b; echo "$1"; (setsid sleep 300 >/dev/null 2>&1 &)', str(n))
            self.assertEqual(bytes(end.out), f"{n}\n".encode())
            self.assertIsNone(container.next())
            if n in (100, 999):
                seen.append((psandboxes.descriptors(entry), psandboxes.memory_kb(entry, "VmData"), psandboxes.children(entry)))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0][2], [])

    def test_files_go_and_data_stays(self):
        container = self.open()
        self.run_sh(container, """
            echo kept >/data/kept; mkdir /data/folder; chmod 700 /data/folder; echo kept >/data/folder/file
            ln -s /data /tmp/link; ln -s /data/folder /dev/shm/folder; mkdir -p /tmp/a/b; ln -s /data /tmp/a/b/link; ln -s / /tmp/a/root
            chmod 0 /tmp/a/b /tmp/a; echo x >/tmp/-rf; mkfifo "/tmp/ new
line"; echo x >/dev/shm/x; chmod 0 /dev/shm/x""")
        self.assertIsNone(container.next())
        end = self.run_sh(container, "ls -A /dev/shm /dev/mqueue; ls -A /tmp; cat /data/kept /data/folder/file")
        self.assertEqual(bytes(end.out), b"/dev/mqueue:\n\n/dev/shm:\nscript\nkept\nkept\n")


def view_of(end):
    """What the probe printed."""
    found = [line for line in end.out.decode().splitlines() if line.startswith("VIEW")]
    assert found, (end.out, end.err)
    return json.loads(found[-1].removeprefix("VIEW"))


@unittest.skipUnless(os.getuid() == 0, "the programs need a user of their own, with bounded processes")
class Attacked(Case):
    """Programs try to outlive their run: the container says so, or the next run sees what it sees in a new one."""

    def try_them(self, attackers, open_container, run, way):
        def probe(container):
            return view_of(run(container, "python", PROBE))
        first = open_container()
        expected = probe(first)
        self.assertIsNone(first.next())
        self.assertEqual(run(first, "python", "").started, way)
        proved, doubts = None, {}
        for what, language, code in attackers:
            with self.subTest(what):
                container, proved = proved or open_container(), None
                run(container, language, TOOLS + code if language == "python" else code)
                doubts[what] = container.next()
                if doubts[what]:
                    continue
                view = probe(container)
                self.assertEqual({name: (view[name], expected[name]) for name in expected if view[name] != expected[name]}, {})
                self.assertIsNone(container.next())
                proved = container if "/data" not in what else None  # what is there stays, and may be in the way
        self.assertGreater(list(doubts.values()).count(None), len(doubts) / 2, doubts)


class Survivors(Attacked):
    def test_traces_are_undone_or_found(self):
        def run(container, language, code):
            return container.run(SHELLS[language], "/tmp/script", code=code, timeout_ms=10000)
        self.try_them([one for one in ATTACKERS if one[1] in SHELLS and NO_LIMIT not in one[0]], self.open, run, "new")

    def test_traces_are_undone_or_found_beside_a_template(self):
        def run(container, _, code):
            return container.run(code=code, timeout_ms=10000)
        self.try_them([one for one in ATTACKERS if one[1] == "python" and NO_LIMIT not in one[0]], self.open_python, run, "warm")


if __name__ == "__main__":
    report.main(base.ENTRY is None and "runners/common/entry has not been built")

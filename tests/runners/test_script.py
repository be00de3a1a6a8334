#!/usr/bin/env python3
"""Where a run's program lies, and what it has left where that is removed. No engine is needed.

$ENTRY, or runners/common/entry in $builddir or beside the sources, is the entry program.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import containers  # noqa: E402
import report  # noqa: E402
from test_entry import ENTRY  # noqa: E402

COMMAND = ("-k", "$0", "/data/.script.sh", "sh", "/data/.script.sh")


def containers_are_possible():
    with tempfile.TemporaryDirectory() as folder:
        return containers.possible(folder)


@unittest.skipUnless(containers_are_possible(), "no containers here")
class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.data = pathlib.Path(folder.name, "data")
        self.data.mkdir()
        self.data.chmod(0o777)
        pathlib.Path(folder.name, "image").mkdir()
        shutil.copy(ENTRY, pathlib.Path(folder.name, "image"))
        self.container = None
        self.command = containers.command(folder.name, *COMMAND)

    def open(self):
        """One more container on the same files."""
        container = psandboxes.Psandbox(self.command)
        self.addCleanup(container.close)
        return container

    def run_sh(self, code, container=None):
        container = container or self.open()
        end = container.run("sh", code=code)
        self.assertEqual(end.report and end.report["exitCode"], 0, bytes(end.err))
        return bytes(end.out).decode()

    def names(self):
        return sorted(os.listdir(self.data))

    def test_it_lies_beside_the_files_and_goes(self):
        self.assertEqual(self.run_sh('echo "$0"; ls -A; stat -c %a "$0"'), "/data/.script.sh\n.script.sh\n1600\n")
        self.assertEqual(self.names(), [])

    def test_no_program_finds_it_unless_it_names_it(self):
        for _ in range(20):
            self.assertEqual(self.run_sh("ls -A; find . -name '.script*'; echo x > own; rm own"), "")
        self.assertEqual(self.run_sh('basename "$0"; ls -A'), ".script.sh\n.script.sh\n")

    def test_a_signal_does_not_harm_it(self):
        self.assertEqual(self.run_sh("kill -IO $PPID; sleep 0.1; echo on; ls -A"), "on\n")
        self.assertEqual(self.run_sh('kill -IO $PPID; sleep 0.1; [ -e "$0" ] || echo gone'), "gone\n")

    def test_two_at_once_have_one_each(self):
        first, second = self.open(), self.open()
        waits = 'echo "$0"; until [ -e go ]; do sleep 0.02; done; tail -n 1 "$0"; # '
        one = first.begin(code=waits + "one")
        first.until(lambda: b"\n" in first.ends[one].out)
        two = second.begin(code=waits + "two")
        second.until(lambda: b"\n" in second.ends[two].out)
        self.data.joinpath("go").touch()
        for container, number, name, word in ((first, one, ".script.sh", "one"), (second, two, ".script-2.sh", "two")):
            end = container.end(number)
            self.assertTrue(bytes(end.out).decode().startswith(f"/data/{name}\n") and bytes(end.out).endswith(word.encode()), bytes(end.out))
        self.assertEqual(self.names(), ["go"])

    def test_a_users_file_of_the_name_stays(self):
        path = self.data / ".script.sh"
        for make, undo in ((path.touch, path.unlink), (path.mkdir, path.rmdir), (lambda: path.symlink_to("/etc/passwd"), path.unlink)):
            make()
            before = path.lstat()
            self.assertEqual(self.run_sh('echo "$0"'), "/data/.script-2.sh\n")
            self.assertEqual((path.lstat().st_ino, self.names()), (before.st_ino, [".script.sh"]))
            undo()

    def test_what_a_killed_container_left_goes(self):
        left = self.data / ".script.sh"
        left.write_text("left")
        left.chmod(0o1666)
        self.assertEqual(self.run_sh('echo "$0"'), "/data/.script-2.sh\n", "an interpreter may be about to open it")
        os.utime(left, (time.time() - 60,) * 2)
        self.assertEqual(self.run_sh('echo "$0"'), "/data/.script.sh\n")
        self.assertEqual(self.names(), [])

    def test_without_room_beside_the_files_it_lies_elsewhere(self):
        for i in range(8):
            self.data.joinpath(f".script{'' if i == 0 else f'-{i + 1}'}.sh").touch()
        self.assertEqual(self.run_sh('echo "$0"'), "/tmp/script.sh\n")

    def test_another_file_that_the_program_puts_there_stays(self):
        self.run_sh('echo new > own; mv own "$0"')
        self.assertEqual(self.names(), [".script.sh"])

    def left(self, code):
        self.container = self.container or self.open()
        found = self.container.run("sh", code=f"cd /tmp; {code}").report
        self.assertIsNone(self.container.next())
        return found.get("left"), found.get("leftOmitted")

    def test_results_that_will_be_gone_are_told(self):
        self.assertEqual(self.left("mkdir -p out/a; echo x > out/a/r.csv"), (["/tmp/out/a/r.csv"], None))
        self.assertEqual(self.left("echo x > /dev/shm/t.npy"), (["/dev/shm/t.npy"], None))
        for path in ("/tmp/tmp_results/r.csv", "/tmp/tmpanalysis", "/tmp/ccresult.csv", "/tmp/joblib_model.pkl", "/tmp/script.sql", "/tmp/numba_times.csv"):
            self.assertEqual(self.left(f"mkdir -p $(dirname {path}); echo x > {path}"), ([path], None))
        self.assertEqual(self.left("echo x > 'Übersicht 1.txt'"), (["/tmp/Übersicht 1.txt"], None))
        paths, more = self.left("for i in 1 2 3 4 5 6 7; do echo x > $i.txt; done")
        self.assertEqual((len(paths), more), (5, 2))

    def test_names_that_cannot_be_told_are_counted(self):
        for name in ('"$(printf "a\\nb")"', "'\"'", "'\\'", '"$(printf "\\377")"', '"$(printf "\\355\\240\\200")"', "$(printf %0201d 1)"):
            self.assertEqual(self.left(f"echo x > {name}"), (None, 1), name)

    def test_what_tools_leave_is_not(self):
        for path in (".cache/fontconfig/x", "tmpab12_x9z/y", "tmpab12_x9z", "tmp.Ab12", "matplotlib-x/fontlist", "node_modules/a/b.js", "ccAb12cd.s", "pymp-x/y",
                     "__pycache__/a.pyc", "a.lock", "a/b/c/d/e/deep"):
            self.assertEqual(self.left(f"mkdir -p $(dirname {path}); echo x > {path}"), (None, None), path)
        self.assertEqual(self.left(": > empty; mkfifo fifo; ln -s /etc/passwd link; mkdir folder"), (None, None))

    def test_many_files_cost_nothing(self):
        paths, more = self.left("seq 1 3000 | while read i; do echo x > $i; done")
        self.assertEqual(len(paths), 5)
        self.assertLess(more, 1000)


if __name__ == "__main__":
    report.main()

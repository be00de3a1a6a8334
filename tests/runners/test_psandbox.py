#!/usr/bin/env python3
"""The entry program's mode "serve" by itself, as PID 1 of a namespace and as an ordinary process. No engine is needed.

The program's path: $ENTRY, else runners/common/entry in $builddir or beside the sources.
"""

import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sbx  # noqa: E402
import psandboxes  # noqa: E402
import report  # noqa: E402
from test_entry import ENTRY, MARK, NAMESPACE  # noqa: E402

SHELL = ("sh", "-c")


class Case(unittest.TestCase):
    prefix = []

    def setUp(self):
        self.psandbox = psandboxes.Psandbox([*self.prefix, ENTRY, "serve"])
        self.addCleanup(self.hang_up)
        self.status = 0

    def hang_up(self):
        self.assertEqual(self.psandbox.close(), (self.status, b""))

    def sh(self, code, **wanted):
        return self.psandbox.sh(code, cwd="/tmp", **wanted)

    def begin(self, code, **wanted):
        return self.psandbox.begin(*SHELL, code, cwd="/tmp", **wanted)

    def check(self, end, out=b"", code=0, killed=0, timed_out=False):
        self.assertIsNone(end.why)
        self.assertEqual((end.report["exitCode"], end.report["signal"], end.report["timedOut"]),
                         (-1 if killed else code, killed, timed_out))
        if out is not None:
            self.assertEqual(bytes(end.out), out)

    def gone(self, marker):
        """Whether no process with marker on its command line is left, soon."""
        deadline = time.monotonic() + 10
        while sbx.alive(marker) and time.monotonic() < deadline:
            time.sleep(0.02)
        return sbx.alive(marker) == []


class Commands:
    def test_output_and_end(self):
        end = self.sh("echo out; echo err >&2; exit 3")
        self.check(end, b"out\n", 3)
        self.assertEqual(bytes(end.err), b"err\n")

    def test_signals_are_told(self):
        for number in (6, 9, 15):
            self.check(self.sh(f"kill -{number} $$"), killed=number)

    def test_arguments_environment_directory(self):
        end = self.psandbox.run("sh", "-c", 'echo "$A|$1|$(pwd)|$#"', "sh", "one two", "", env=["A=b c"], cwd="/")
        self.check(end, b"b c|one two|/|2\n")

    def test_input_is_whole_and_ends(self):
        data = os.urandom(3_000_000)
        end = self.psandbox.run("cat", stdin=data, cwd="/tmp")
        self.check(end, data)
        self.check(self.sh("cat"), b"")

    def test_unread_input_stops_no_other_command(self):
        number = self.begin("sleep 30", stdin=b"x" * 3_000_000)
        self.check(self.sh("echo on"), b"on\n")
        self.psandbox.kill(number)
        self.check(self.psandbox.end(number), killed=9)

    def test_what_cannot_be_started_is_told(self):
        for argv, wanted, why in ((("no-such-program",), {"cwd": "/tmp"}, "starting no-such-program: No such file or directory"),
                                  (("/etc/passwd",), {"cwd": "/tmp"}, "starting /etc/passwd: Permission denied"),
                                  (("true",), {"cwd": "/no/where"}, "entering the working directory of true: No such file"),
                                  (("true", "y" * 200_000), {"cwd": "/tmp"}, "starting true: Argument list too long")):
            end = self.psandbox.run(*argv, **wanted)
            self.assertIsNone(end.report)
            self.assertIn(why, end.why)
        self.check(self.sh("echo on"), b"on\n")

    def test_descriptors_are_the_programs_own(self):
        for control, known in ((False, b"0 1 2"), (True, b"0 1 2 3")):
            end = self.psandbox.run("sh", "-c", "cd /proc/self/fd; echo *", control=control, cwd="/tmp")
            # The shell's own way into the folder may be there, too.
            self.assertTrue(bytes(end.out).startswith(known), end.out)
            self.assertLessEqual(len(end.out.split()), len(known.split()) + 1)

    def test_several_at_once_do_not_mix(self):
        numbers = [self.begin(f"for i in $(seq 200); do echo {n} $i; done; exit {n}") for n in range(40)]
        for n, number in enumerate(numbers):
            self.check(self.psandbox.end(number), b"".join(b"%d %d\n" % (n, i) for i in range(1, 201)), n)

    def test_a_thousand_in_a_row_leave_nothing(self):
        self.sh("true")
        before = psandboxes.descriptors(self.psandbox.entry_pid())
        for _ in range(1000):
            self.check(self.psandbox.run("true", cwd="/tmp"))
        self.assertEqual(psandboxes.descriptors(self.psandbox.entry_pid()), before)
        self.assertLess(psandboxes.memory_kb(self.psandbox.entry_pid(), "VmRSS"), 4096)

    def test_last_bytes_are_never_lost(self):
        for _ in range(20):
            end = self.sh("head -c 1000000 /dev/zero; head -c 70000 /dev/zero >&2")
            self.assertEqual((len(end.out), len(end.err)), (1_000_000, 70_000))

    def test_idle_costs_nothing(self):
        self.sh("sleep 30 & true")
        stat = f"/proc/{self.psandbox.entry_pid()}/stat"


        def ticks():
            with open(stat) as f:
                return sum(map(int, f.read().split()[13:15]))
        time.sleep(1)
        before = ticks()
        time.sleep(1)
        self.assertLessEqual(ticks() - before, 1)


class Ends:
    def test_timeout_kills_what_was_started(self):
        end = self.sh(f"trap '' TERM; (trap '' TERM; sleep {MARK}.1) & sh -c 'sleep {MARK}.1' ; sleep {MARK}.1", timeout_ms=300)
        self.check(end, killed=9, timed_out=True)
        self.assertTrue(self.gone(f"{MARK}.1"))

    def test_kill_takes_processes_with_sessions_of_their_own(self):
        number = self.begin(f"setsid sleep {MARK}.2 & setsid sh -c 'sleep {MARK}.2 & sleep {MARK}.2' & echo up; wait")
        self.psandbox.until(lambda: self.psandbox.ends[number].out == b"up\n")
        time.sleep(0.2)
        self.psandbox.kill(number)
        self.check(self.psandbox.end(number), b"up\n", killed=9)
        self.assertTrue(self.gone(f"{MARK}.2"))

    def test_kill_leaves_the_others(self):
        other = self.begin("sleep 0.7; echo fine")
        number = self.begin("sleep 30")
        self.psandbox.kill(number)
        self.check(self.psandbox.end(number), killed=9)
        self.check(self.psandbox.end(other), b"fine\n")

    def test_a_fork_storm_ends_with_its_command(self):
        # At most 40 branches of 30 forks: more than the time allows, less than what fills a process table.
        branch = f"for i in $(seq 30); do sleep {MARK}.3 & sleep 0.01; done; exec sleep {MARK}.3"
        storm = f"for i in $(seq 40); do sh -c '{branch}' & sleep 0.02; done; exec sleep {MARK}.3"
        # Several at once: a fork is more often under way when its parent is stopped.
        for number in [self.begin(storm, timeout_ms=700) for _ in range(3)]:
            self.check(self.psandbox.end(number), killed=9, timed_out=True)
        self.assertTrue(self.gone(f"{MARK}.3"))

    def test_kill_of_one_that_has_ended_is_nothing(self):
        number = self.begin("true")
        self.check(self.psandbox.end(number))
        self.psandbox.kill(number)
        self.psandbox.kill(12345)
        self.psandbox.tell(12345, b"x")
        self.check(self.sh("echo on"), b"on\n")

    def test_what_outlives_its_command_goes_on(self):
        began = time.monotonic()
        end = self.sh("(while :; do echo noise; echo noise >&2; date >> /dev/null; sleep 0.01; done) & echo $!; exit 4")
        self.assertLess(time.monotonic() - began, 20)
        self.check(end, None, 4)
        pid = next(word for word in end.out.split() if word != b"noise").decode()
        time.sleep(0.5)
        self.check(self.sh(f"kill -0 {pid} && kill {pid}"))

    def test_what_floods_after_its_command_stops_no_other(self):
        end = self.sh("yes & echo $!; exit 5")
        self.check(end, None, 5)
        pid = next(word for word in end.out.split() if word != b"y").decode()
        self.check(self.sh(f"echo on; kill {pid}"), b"on\n")

    def test_children_may_say_something_late(self):
        self.check(self.sh("(sleep 0.02; echo late) & echo soon"), b"soon\nlate\n")

    def test_many_that_are_left_over(self):
        numbers = [self.begin("sleep 30 & echo $!") for _ in range(60)]
        numbers += [self.begin("sleep 30 & echo $!") for _ in range(4)]
        pids = b" ".join(self.psandbox.end(number).out.strip() for number in numbers).decode()
        numbers = [self.begin("sleep 30 & :") for _ in range(64)]
        for number in numbers:
            self.check(self.psandbox.end(number))
        self.check(self.sh(f"kill -0 {pids} && echo on"), b"on\n")

    def test_orphans_are_reaped(self):
        self.check(self.sh("for i in 1 2 3 4 5; do (sh -c 'sleep 0.05 &') ; done"))
        if self.prefix:  # else they are another's, and ps has the whole machine
            self.check(self.sh("for n in $(seq 100); do sleep 0.1; ps -eo stat=,comm= | grep -q '^Z.*sleep' || exit 0; done; exit 1"))

    def test_hanging_up_kills_everything(self):
        self.begin(f"setsid sleep {MARK}.4 & sleep {MARK}.4")
        self.sh(f"setsid sleep {MARK}.4 >/dev/null 2>&1 & true")
        self.assertEqual(self.psandbox.close(), (0, b""))
        self.assertTrue(self.gone(f"{MARK}.4"))
        self.psandbox = psandboxes.Psandbox([*self.prefix, ENTRY, "serve"])

    def test_bad_records_end_it(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n", sbx.record("Q", 1), sbx.record("X", 1), b"X\0\0\0\2ab",
                     sbx.record("X", 1, b"Atrue"), sbx.record("X", 1, b"Q\0"), sbx.record("X", 1, b"D/tmp\0"),
                     sbx.record("X", 1, b"EA\0Atrue\0")):
            with self.subTest(data=data):
                psandbox = psandboxes.Psandbox([*self.prefix, ENTRY, "serve"])
                psandbox.send(data)
                status, said = psandbox.close()
                self.assertEqual((status, said), (125, b"entry: bad record\n"))


class Flow:
    def test_a_reader_that_stops_loses_nothing_and_memory_stays_flat(self):
        number = self.begin("head -c 20000000 /dev/zero")
        self.psandbox.reading.clear()
        time.sleep(0.5)
        self.psandbox.reading.set()
        end = self.psandbox.end(number)
        self.assertEqual(len(end.out), 20_000_000)
        self.assertLess(psandboxes.memory_kb(self.psandbox.entry_pid()), 4096)

    def test_a_flood_does_not_starve_the_others(self):
        flood = self.begin("yes")
        self.check(self.sh("echo through"), b"through\n")
        self.psandbox.kill(flood)
        self.check(self.psandbox.end(flood), None, killed=9)

    def test_a_kill_comes_through_while_output_is_unread(self):
        number = self.begin(f"yes {MARK}.5")
        self.psandbox.until(lambda: self.psandbox.ends[number].out)
        self.psandbox.reading.clear()
        time.sleep(0.3)
        self.psandbox.kill(number)
        self.assertTrue(self.gone(f"{MARK}.5"))
        self.psandbox.reading.set()
        self.check(self.psandbox.end(number), None, killed=9)


class Control:
    TALK = "import os; d = os.read(3, 100); print('got', d.decode(), flush=True); os.write(3, b'done'); os.read(3, 1)"

    def test_both_ways_and_behind_what_was_printed(self):
        for _ in range(10):
            number = self.psandbox.begin("python3", "-c", self.TALK, control=True, cwd="/tmp")
            self.psandbox.tell(number, b"this")
            self.psandbox.until(lambda: self.psandbox.ends[number].control == b"done")
            self.assertEqual(bytes(self.psandbox.ends[number].out), b"got this\n")
            self.psandbox.tell(number, b"x")
            self.check(self.psandbox.end(number), b"got this\n")

    def test_no_word_overtakes_the_output_before_it(self):
        """A byte printed, a byte told, without a pause: when words have come, as much output has."""
        number = self.psandbox.begin("python3", "-c", "import os\nfor i in range(20000): os.write(1, b'x'); os.write(3, b'y')", control=True, cwd="/tmp")
        end = self.psandbox.ends[number]

        def over():
            self.assertLessEqual(len(end.control), len(end.out))
            return end.over
        self.psandbox.until(over)
        self.assertEqual((len(end.control), len(end.out)), (20000, 20000))

    def test_a_flood_beside_it_does_not_hold_it_up(self):
        number = self.psandbox.begin("sh", "-c", "yes & sleep 0.2; echo word >&3; sleep 30", control=True, cwd="/tmp")
        self.psandbox.until(lambda: self.psandbox.ends[number].control == b"word\n")
        self.psandbox.kill(number)
        self.check(self.psandbox.end(number), None, killed=9)

    def test_one_that_does_not_read_it_stops_no_other(self):
        number = self.psandbox.begin("sleep", "30", control=True, cwd="/tmp")
        for _ in range(100):
            self.psandbox.tell(number, b"x" * 65536)
        self.check(self.sh("echo on"), b"on\n")
        self.psandbox.kill(number)
        self.check(self.psandbox.end(number), killed=9)

    def test_one_that_closes_it_goes_on(self):
        number = self.psandbox.begin("sh", "-c", "exec 3>&-; sleep 0.3; echo on", control=True, cwd="/tmp")
        for _ in range(10):
            self.psandbox.tell(number, b"x" * 65536)
        self.check(self.psandbox.end(number), b"on\n")

    def test_rubbish_on_it_is_passed_on(self):
        number = self.psandbox.begin("sh", "-c", "head -c 1000000 /dev/urandom >&3", control=True, cwd="/tmp")
        end = self.psandbox.end(number)
        self.assertEqual(len(end.control), 1_000_000)
        self.check(self.sh("echo on"), b"on\n")


@unittest.skipUnless(NAMESPACE, "no PID namespaces here")
class AsInit(Commands, Ends, Flow, Control, Case):
    prefix = NAMESPACE or []

    def test_one_that_kills_everybody_is_told(self):
        other = self.begin("sleep 30")
        end = self.sh("trap '' TERM; kill -TERM -1; kill -TERM 1; kill -KILL 1; kill -INT 1; echo on")
        self.check(end, b"on\n")
        self.check(self.psandbox.end(other), killed=15)
        self.check(self.sh("echo still"), b"still\n")

    def test_term_from_outside_ends_it(self):
        number = self.begin("echo up; sleep 30")
        self.psandbox.until(lambda: self.psandbox.ends[number].out)
        self.status = 143
        os.kill(self.psandbox.entry_pid(), signal.SIGTERM)
        with self.assertRaises(EOFError):
            self.psandbox.end(number)

    def test_programs_cannot_reach_the_stream(self):
        if os.getuid() != 0:
            self.skipTest("needs root to change its user")
        drop = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        psandbox = psandboxes.Psandbox([*self.prefix, *drop, ENTRY, "serve"])
        end = psandbox.sh("id -u; ls /proc/1/fd; cat /proc/1/mem; echo x > /proc/1/fd/1; cat /proc/1/environ; "
                      "cat /proc/$$/oom_score_adj", cwd="/tmp")
        self.assertEqual(bytes(end.out), b"1000\n1000\n")
        self.assertEqual(bytes(end.err).count(b"ermission denied"), 4)
        # A process that is about to become a command holds no way to the stream either.
        spy = psandbox.begin("python3", "-c", SPY, cwd="/tmp")
        for _ in range(300):
            psandbox.run("true", cwd="/tmp")
        psandbox.kill(spy)
        self.assertEqual(bytes(psandbox.end(spy).out), b"")
        self.assertEqual(psandbox.close(), (0, b""))


# Prints what it can open behind other processes' descriptors and is neither a pipe of theirs nor a file.
SPY = """
import os
mine = {os.readlink(f"/proc/self/fd/{n}") for n in "12"}
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for n in os.listdir(f"/proc/{pid}/fd"):
                place = os.readlink(f"/proc/{pid}/fd/{n}")
                if int(n) > 4 and int(pid) != os.getpid() and "/proc" not in place:
                    print(pid, n, place, flush=True)
        except OSError:
            pass
"""


class AsOrdinaryProcess(Commands, Ends, Flow, Control, Case):
    pass


if __name__ == "__main__":
    report.main(ENTRY is None and "runners/common/entry has not been built")

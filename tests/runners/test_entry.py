#!/usr/bin/env python3
"""The entry program by itself, as PID 1 of a namespace of its own and as an ordinary process. No engine is needed.

The program's path: $ENTRY, else runners/common/entry in $builddir or beside the sources.
"""

import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import report  # noqa: E402
import sbx  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
# Marks the sleeps of this very process, so that tests side by side do not see each other's.
MARK = f"9{os.getpid()}"


def find_built(variable, name):
    for path in (os.environ.get(variable), os.path.join(os.environ.get("builddir", ""), name), TOP / name):
        if path and os.path.exists(path):
            return str(pathlib.Path(path).resolve())
    return None


def namespace():
    """The command that makes its argument PID 1; None where the system does not allow it."""
    for command in (["unshare", "-pf", "--kill-child", "-m", "--mount-proc"],
                    ["unshare", "-Urpf", "--kill-child", "-m", "--mount-proc"]):
        if shutil.which("unshare") and subprocess.run(command + ["true"], capture_output=True).returncode == 0:
            return command
    return None


ENTRY = find_built("ENTRY", "runners/common/entry")
NAMESPACE = namespace()


class Case(unittest.TestCase):
    prefix = []

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.script = os.path.join(self.dir.name, "script")

    def command(self, *program):
        program = program or ("sh", self.script)
        return [*self.prefix, ENTRY, "-C", self.dir.name, self.script, *program]

    def sh(self, code, **options):
        return sbx.run(self.command(), sbx.program(code, **options))

    def await_output(self, p):
        next(tag for tag, _, _ in sbx.frames(p.stdout) if tag == "O")

    def check_end(self, r, code=0, signal=0, timed_out=False):
        self.assertEqual(r.said, b"")
        self.assertIsNotNone(r.report)
        self.assertEqual((r.report["exitCode"], r.report["signal"], r.report["timedOut"]),
                         (-1 if signal else code, signal, timed_out))
        self.assertEqual(r.exit, 0)


class Basics:
    """What holds with and without being PID 1."""

    def test_output_and_exit_code(self):
        r = self.sh("echo out; echo err >&2; exit 3")
        self.assertEqual((bytes(r.out), bytes(r.err)), (b"out\n", b"err\n"))
        self.check_end(r, 3)

    def test_exit_codes_that_look_like_something_else(self):
        for code in (124, 125, 126, 127, 137, 143, 255):
            self.check_end(self.sh(f"exit {code}"), code)

    def test_silent_program(self):
        r = self.sh("")
        self.assertEqual(r.frames[:-1], [])
        self.check_end(r)

    def test_signals(self):
        for number in (6, 9, 11, 15):
            r = self.sh(f"kill -{number} $$")
            self.check_end(r, signal=number)

    def test_report_fields(self):
        r = self.sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        self.assertEqual(set(r.report), {"exitCode", "signal", "cpuUs", "peakMemoryBytes", "oomKills", "timedOut"})
        self.assertGreater(r.report["cpuUs"], 1000)
        self.assertGreater(r.report["peakMemoryBytes"], 100_000)

    def test_stdin(self):
        data = os.urandom(3_000_000)
        r = self.sh("cat", stdin=data)
        self.assertEqual(bytes(r.out), data)
        self.check_end(r)

    def test_no_stdin_is_empty(self):
        self.assertEqual(bytes(self.sh("cat; echo end").out), b"end\n")

    def test_arguments(self):
        args = ["", "a b", "-x", "*", "é", "'\"$(id)`"]
        r = self.sh('for a in "$@"; do printf "%s\\n" "$a"; done', args=args)
        self.assertEqual(bytes(r.out).decode().split("\n")[:-1], args)

    def test_environment(self):
        os.environ["SBX_KEPT"], os.environ["SBX_OWN"] = "kept", "old"
        self.addCleanup(os.environ.pop, "SBX_KEPT")
        self.addCleanup(os.environ.pop, "SBX_OWN")
        r = self.sh('echo "$SBX_OWN|$SBX_KEPT|$SBX_ADDED|$SBX_EMPTY|"; env | grep -c ^SBX_OWN=',
                    env=["SBX_OWN=first", "SBX_OWN=new=value", "SBX_ADDED=ä\nb", "SBX_EMPTY="])
        self.assertEqual(bytes(r.out).decode(), "new=value|kept|ä\nb||\n1\n")

    def test_working_directory_and_session(self):
        r = self.sh('pwd; ps -o pid=,sid= -p $$ | { read p s; [ "$p" = "$s" ] && echo leader; }')
        self.assertEqual(bytes(r.out).decode(), f"{os.path.realpath(self.dir.name)}\nleader\n")

    def test_only_three_descriptors(self):
        r = sbx.run(self.command(sys.executable, self.script),
                    sbx.program("import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd')))"))
        self.assertEqual(bytes(r.out), b"[0, 1, 2, 3]\n")  # 3 is the listing itself

    def test_default_signals_and_no_core(self):
        r = self.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status; ulimit -c; cat /proc/$$/oom_score_adj")
        # A shell ignores and blocks nothing by itself when it runs a script.
        words = bytes(r.out).decode().split()
        # 32 and 33 are glibc's own: no program can set them, and a shell may have inherited them ignored.
        words[3] = f"{int(words[3], 16) & ~(3 << 31):016x}"
        self.assertEqual(words, ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16, "0", "1000"])

    def test_script_is_private(self):
        r = self.sh('stat -c %a "$0"')
        self.assertEqual(bytes(r.out), b"600\n")

    def test_frames_stay_small(self):
        r = self.sh("head -c 3000000 /dev/zero")
        self.assertEqual(len(r.out), 3_000_000)
        self.assertLessEqual(max(n for _, n in r.frames), 65536)

    def test_many_lines_arrive_as_they_are_printed(self):
        p = sbx.start(self.command(), sbx.program("for i in 1 2 3; do echo $i; sleep 0.6; done"))
        times = []
        sbx.collect(p, on_frame=lambda tag, data: times.append(time.monotonic()))
        self.assertGreater(times[-1] - times[0], 0.5)

    def test_last_bytes_are_never_lost(self):
        for _ in range(30):
            r = self.sh("head -c 1000000 /dev/zero; head -c 70000 /dev/zero >&2")
            self.assertEqual((len(r.out), len(r.err)), (1_000_000, 70_000))

    def test_deadline(self):
        began = time.monotonic()
        r = self.sh("trap '' TERM; echo begun; while :; do sleep 100; done", deadline_ms=500)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(bytes(r.out), b"begun\n")
        self.check_end(r, signal=9, timed_out=True)

    def test_deadline_with_flooding_program(self):
        r = sbx.run(self.command(), sbx.program("yes", deadline_ms=300), keep=False)
        self.check_end(r, signal=9, timed_out=True)

    def test_deadline_not_reached(self):
        self.check_end(self.sh("exit 0", deadline_ms=60000))

    def test_grandchild_that_holds_the_output(self):
        began = time.monotonic()
        r = self.sh(f"setsid sh -c 'trap \"\" TERM HUP; sleep {MARK}.1' & echo done; exit 4")
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(bytes(r.out), b"done\n")
        self.check_end(r, 4)
        self.assertEqual(sbx.alive(f"{MARK}.1"), [])

    def test_grandchild_that_floods(self):
        began = time.monotonic()
        r = sbx.run(self.command(), sbx.program("yes & exit 5"), keep=False)
        self.assertLess(time.monotonic() - began, 20)
        self.check_end(r, 5)

    def test_grandchild_may_finish_in_time(self):
        r = self.sh("(sleep 0.02; echo late) & echo soon")
        self.assertEqual(bytes(r.out), b"soon\nlate\n")
        self.check_end(r)

    def test_quiet_daemon_is_killed_too(self):
        r = self.sh(f"setsid sleep {MARK}.2 </dev/null >/dev/null 2>&1 & exit 0")
        self.check_end(r)
        self.assertEqual(sbx.alive(f"{MARK}.2"), [])

    def test_program_that_closes_its_output(self):
        self.check_end(self.sh("exec >&- 2>&-; sleep 0.4; exit 6"), 6)

    def test_orphans_are_reaped(self):
        r = self.sh("for i in 1 2 3 4 5; do (sh -c 'sleep 0.05 &') ; done; sleep 0.3; ps -eo stat=,ppid= | grep -c '^Z' || :")
        self.check_end(r)

    def test_server_gone_kills_everything(self):
        p = sbx.start(self.command(), sbx.program(f"setsid sleep {MARK}.3 & echo up; sleep {MARK}.4"))
        self.await_output(p)
        p.feeder.join()
        p.stdin.close()
        p.wait(timeout=20)
        p.stdout.close()
        p.stderr.close()
        deadline = time.monotonic() + 10
        while sbx.alive(f"{MARK}.3") + sbx.alive(f"{MARK}.4") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(sbx.alive(f"{MARK}.4"), [])
        self.assertEqual(sbx.alive(f"{MARK}.3"), [])

    def test_server_gone_while_the_output_is_stuck(self):
        p = sbx.start(self.command(), sbx.program("yes"))
        time.sleep(0.3)  # without a reader
        p.feeder.join()
        p.stdin.close()
        p.wait(timeout=20)
        p.stdout.close()
        p.stderr.close()

    def test_gone_before_the_start(self):
        p = sbx.start(self.command(), sbx.program("echo never", go=False))
        p.feeder.join()
        p.stdin.close()
        self.assertLessEqual({tag for tag, _, _ in sbx.frames(p.stdout)}, {"W"})
        self.assertEqual((p.stderr.read(), p.wait(timeout=20)), (b"", 0))
        p.stdout.close()
        p.stderr.close()

    def test_slow_reader_gets_everything(self):
        p = sbx.start(self.command(), sbx.program("head -c 2000000 /dev/zero; exit 8"))
        time.sleep(0.7)  # longer than the grace that children get
        r = sbx.collect(p)
        self.assertEqual(len(r.out), 2_000_000)
        self.check_end(r, 8)


class Refusals:
    def refuse(self, data, reason, command=None):
        r = sbx.run(command or self.command(), data)
        self.assertEqual((r.exit, r.report, bytes(r.out), r.said), (0, None, b"", b""))
        self.assertIn(reason, r.why)

    def test_bad_records(self):
        code = sbx.record("C", 1, "echo no")
        for data in (b"GET / HTTP/1.1\r\n\r\n",
                     code + code + sbx.record("C", 2, "echo two at once"),
                     sbx.record("I", 1, "a") + code,
                     sbx.record("Q", 1),
                     b"C\xff\xff\xff\xff",
                     code + sbx.record("X", 1, b"Aa"),
                     code + sbx.record("X", 1, b"E=x\0"),
                     code + sbx.record("X", 1, b"E\0"),
                     code + sbx.record("X", 1, b"ENAME\0"),
                     code + sbx.record("X", 1, b"Q\0"),
                     b"X" + (5 << 20).to_bytes(4, "big")):
            with self.subTest(data=data[:40]):
                r = sbx.run(self.command(), data)
                self.assertEqual((r.exit, r.report, r.said), (125, None, b"entry: bad record\n"))

    def test_a_program_that_takes_its_descriptors(self):
        r = sbx.run(self.command(), sbx.program("prlimit --pid $PPID --nofile=1:1; echo; exec sleep 20"))
        self.assertEqual((r.exit, r.report, r.said), (125, None, b"entry: fewer descriptors are allowed than it needs\n"))

    def test_program_that_cannot_be_started(self):
        command = self.command("no-such-program")
        self.refuse(sbx.program("x"), b"starting no-such-program: No such file", command)

    def test_no_working_directory(self):
        command = [*self.prefix, ENTRY, "-C", "/no/such/place", self.script, "true"]
        self.refuse(sbx.program("x"), b"working directory of true", command)

    def test_no_place_for_the_code(self):
        command = [*self.prefix, ENTRY, "-C", self.dir.name, "/no/such/place", "true"]
        self.refuse(sbx.program("x"), b"creating the script: No such file", command)

    def test_argument_too_long(self):
        self.refuse(sbx.program("x", args=["y" * 200_000]), b"too long")


class Together:
    """Runs and commands share a container."""

    def open(self):
        container = psandboxes.Psandbox(self.command())
        self.addCleanup(lambda: self.assertEqual(container.close(), (0, b"")))
        return container

    def test_a_container_of_no_known_shape_serves_once(self):
        container = self.open()
        self.assertEqual(container.run(code="exit 3").order, ["S", "R"])
        self.assertRegex(container.next(), r"^(the entry program is not PID 1|programs can write to /\w*)$")

    def test_a_run_ends_what_else_there_is(self):
        container = self.open()
        other = container.begin("sleep", f"{MARK}.7")
        container.sh(f"setsid sleep {MARK}.7 >/dev/null 2>&1 &")
        end = container.run(code="echo on; exit 3")
        self.assertEqual((bytes(end.out), end.report["exitCode"], sbx.alive(f"{MARK}.7")), (b"on\n", 3, []))
        self.assertEqual(container.end(other).report["signal"], 9)
        self.assertEqual(bytes(container.sh("echo on").out), b"on\n")

    def test_a_kill_ends_a_run(self):
        container = self.open()
        number = container.begin(code=f"setsid sleep {MARK}.8 & echo up; sleep {MARK}.8")
        container.until(lambda: container.ends[number].out)
        container.kill(number)
        self.assertEqual(container.end(number).report["signal"], 9)
        self.assertEqual(sbx.alive(f"{MARK}.8"), [])


@unittest.skipUnless(NAMESPACE, "no PID namespaces here")
class AsInit(Basics, Refusals, Together, Case):
    prefix = NAMESPACE or []

    def test_program_cannot_reach_the_stream(self):
        # Only an unprivileged program is kept out; root could do anything anyway.
        if os.getuid() != 0:
            self.skipTest("needs root to change its user")
        os.chmod(self.dir.name, 0o777)
        drop = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        command = [*self.prefix, *drop, ENTRY, "-C", self.dir.name, self.script, "sh", self.script]
        r = sbx.run(command, sbx.program("id -u; ls /proc/1/fd; cat /proc/1/mem; echo x > /proc/1/fd/1; kill -9 1; "
                                          "cat /proc/$$/oom_score_adj"))
        self.assertEqual(bytes(r.out), b"1000\n1000\n")
        self.assertEqual(bytes(r.err).count(b"ermission denied"), 3)
        self.check_end(r)

    def test_term_ends_a_waiting_entry(self):
        p = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        select.select([p.stdout], [], [], 20)  # it says that it waits
        child = int(pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0])
        os.kill(child, 15)
        self.assertEqual((p.wait(timeout=20), [sbx.tier_of(payload) for _, _, payload in sbx.frames(p.stdout)], p.stderr.read()),
                         (143, ["started"], b""))
        for f in (p.stdin, p.stdout, p.stderr):
            f.close()

    def test_term_from_outside_ends_a_run_without_a_report(self):
        p = sbx.start(self.command(), sbx.program(f"echo up; sleep {MARK}.5"))
        self.await_output(p)
        child = int(pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0])
        os.kill(child, 15)
        r = sbx.collect(p)
        self.assertEqual((r.exit, r.report, r.why, sbx.alive(f"{MARK}.5")), (143, None, None, []))

    def test_term_from_inside_is_nothing(self):
        r = self.sh("kill -TERM 1; echo on")
        self.assertEqual(bytes(r.out), b"on\n")
        self.check_end(r)

    def test_large_output_in_flat_memory(self):
        total = 100 << 20
        p = sbx.start(self.command(), sbx.program(f"head -c {total} /dev/zero"))
        child = None
        peak = 0
        seen = 0

        def look(tag, data):
            nonlocal child, peak, seen
            seen += len(data) if tag == "O" else 0
            if seen % (1 << 20) > 65536 * 2:
                return
            try:
                if child is None:
                    child = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0]
                for line in pathlib.Path(f"/proc/{child}/status").read_text().splitlines():
                    if line.startswith("VmHWM"):
                        peak = max(peak, int(line.split()[1]))
            except (OSError, IndexError):
                pass

        r = sbx.collect(p, keep=False, on_frame=look)
        self.check_end(r)
        self.assertEqual(seen, total)
        self.assertGreater(peak, 0)
        self.assertLess(peak, 2048)  # KiB

    def test_fork_storm_is_over_at_the_deadline(self):
        r = self.sh(f"while :; do sh -c 'while :; do sleep {MARK}.6 & sleep 0.01; done' & sleep 0.02; done", deadline_ms=600)
        self.check_end(r, signal=9, timed_out=True)
        self.assertEqual(sbx.alive(f"{MARK}.6"), [])


class AsOrdinaryProcess(Basics, Refusals, Together, Case):
    pass


if __name__ == "__main__":
    report.main(ENTRY is None and "runners/common/entry has not been built")

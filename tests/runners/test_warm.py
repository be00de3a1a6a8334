#!/usr/bin/env python3
"""The entry program with a warm interpreter: a small one that can misbehave (hook.py), and the system's Python with
the hook of the Python runner. No engine is needed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import report  # noqa: E402
import sbx  # noqa: E402
import test_entry as base  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OBJECT = base.find_built("WARM", "runners/warm/warm.so")
HOOK = str(HERE / "hook.py")


class Waiting(base.Case):
    """A case in which frames are read one by one. The script lies beside the working directory."""

    def setUp(self):
        super().setUp()
        self.data = os.path.join(self.dir.name, "data")
        os.mkdir(self.data)

    def command(self, *options, word="", program=(sys.executable, HOOK)):
        extra = ["-x", f"HOOK_WORD={word}"] if word else []
        return [*self.prefix, base.ENTRY, "-C", self.data, "-w", *extra, *options, self.script, *program, self.script]

    def start(self, *options, **more):
        p = sbx.start(self.command(*options, **more), b"")
        self.addCleanup(self.end, p)
        return p

    def end(self, p):
        if p.poll() is None:
            p.kill()
            p.wait()
        for f in (p.stdin, p.stdout, p.stderr):
            try:
                f.close()
            except BrokenPipeError:
                pass

    def send(self, p, data):
        p.stdin.write(data)
        p.stdin.flush()

    def await_word(self, p, tier):
        self.assertEqual(sbx.read_tier(sbx.frames(p.stdout)), tier)

    def preload(self, p, names):
        self.send(p, sbx.preload(names))

    def claim(self, p, code, **options):
        self.send(p, sbx.program(code, **options))
        return sbx.collect(p)

    def run_warm(self, code, *options, word="", **more):
        p = self.start(*options, word=word)
        self.await_word(p, "started")
        return self.claim(p, code, **more)

    def check(self, r, way, out, **ending):
        self.assertEqual((r.started, bytes(r.out).decode()), (way, out))
        self.check_end(r, **ending)


class Claims:
    def test_takes_the_program(self):
        r = self.run_warm('echo "$WAY|$1|$2|$X|$(cat)"; pwd >&2; exit 3', args=["a b", "é"], env=["X=y=z"], stdin="in\n")
        self.check(r, "warm", "warm|a b|é|y=z|in\n", code=3)
        self.assertEqual(bytes(r.err).decode(), os.path.realpath(self.data) + "\n")

    def test_signals_pass(self):
        for number in (6, 9, 11, 15):
            self.check(self.run_warm(f"kill -{number} $$"), "warm", "", signal=number)

    def test_nothing_of_the_hook_is_left(self):
        r = self.run_warm("ls -l /proc/$$/fd | grep -c socket; env | grep -c -e warm.so -e HOOK_WORD", "-l", OBJECT)
        self.check(r, "warm", "0\n0\n", code=1)

    def test_claimed_before_it_is_up(self):
        p = self.start(word="late")
        self.check(self.claim(p, "echo $WAY"), "warm", "warm\n")

    def test_preload(self):
        p = self.start()
        self.preload(p, "a0.01 b0.01")
        self.await_word(p, "started")
        self.await_word(p, "preloaded")
        self.check(self.claim(p, "echo $WAY"), "warm", "warm\n")

    def test_claimed_during_an_import_it_needs(self):
        p = self.start()
        self.await_word(p, "started")
        self.preload(p, "a0.6 b60")
        time.sleep(0.2)
        self.check(self.claim(p, "echo $WAY a0"), "warm", "warm a0\n")

    def test_claimed_during_an_import_it_does_not_need(self, way="new", out="\n"):
        p = self.start()
        self.await_word(p, "started")
        self.preload(p, "a30")
        time.sleep(0.2)
        began = time.monotonic()
        self.check(self.claim(p, "echo $WAY"), way, out)
        self.assertLess(time.monotonic() - began, 10)

    def test_it_died(self):
        p = self.start(word="dead")
        self.await_word(p, "started")
        self.preload(p, "a1")
        self.await_word(p, "preloaded")
        self.check(self.claim(p, "echo $WAY$1", args=["x"]), "new", "x\n")

    def test_it_refuses_or_dies_with_the_program(self):
        for word in ("refuse", "dying"):
            self.check(self.run_warm("cat; exit 4", word=word, stdin="in"), "new", "in", code=4)

    def test_it_does_not_answer(self):
        self.check(self.run_warm("echo never", word="mute", deadline_ms=300), "warm", "", signal=9, timed_out=True)

    def test_variables_that_count(self):
        os.environ["SBX_SAME"] = "1"
        self.addCleanup(os.environ.pop, "SBX_SAME")
        for variable, way in (("LC_ALL=C", "new"), ("ZONE=x", "new"), ("ZONES=x", "warm"), ("SBX_SAME=1", "warm"),
                              ("SBX_SAME=2", "new")):
            r = self.run_warm("exit 0", "-e", "LC_*,ZONE SBX_SAME", env=[variable])
            self.assertEqual((variable, r.started), (variable, way))

    def test_words_of_programs_that_all_variables_count_for(self):
        for code, variable, way in (("exit 0", "A=1", "warm"), ("exit 0 # spawn", "A=1", "new"), ("exit 0 # Worker", "A=1", "new"),
                                    ("exit 0 # spa", "A=1", "warm")):
            r = self.run_warm(code, "-s", "spawn, Worker", env=[variable])
            self.assertEqual((code, r.started), (code, way))
        self.assertEqual(self.run_warm("exit 0 # spawn", "-s", "spawn").started, "warm")

    def test_files_that_count(self):
        for names, way in (([], "warm"), (["x.toml", "other"], "warm"), (["a.toml"], "new"), (["site.d"], "new")):
            for begin in (True, False):
                p = None if begin else self.start("-f", "a.toml,site*")
                if p:
                    self.await_word(p, "started")
                for name in names:
                    pathlib.Path(self.data, name).touch()
                p = p or self.start("-f", "a.toml,site*")
                r = self.claim(p, "ls")
                self.check(r, way, "".join(f"{n}\n" for n in sorted(names)))
                for name in names:
                    os.unlink(os.path.join(self.data, name))

    def test_as_many_arguments_as_a_packet_takes_and_more(self):
        self.check(self.run_warm('echo $#', args=["x" * 32_000] * 2), "warm", "2\n")
        self.check(self.run_warm('echo $#', args=["x" * 30_000] * 3), "new", "3\n")

    def test_option_and_place(self):
        p = self.start("-p", "-o", HOOK, program=(sys.executable,))
        self.await_word(p, "started")
        self.assertFalse(os.path.exists(self.script))
        self.check(self.claim(p, "echo $WAY"), "warm", "warm\n")

    def test_place_while_it_comes_up(self):
        """As Bun does, it finds its program by the descriptor: it is the same file when the program comes."""
        mark = f"{self.script}.opened"
        begin = (f"import os, runpy, sys, time; file = open({self.script!r}); open({mark!r}, 'w').close(); time.sleep(0.5); "
                 f"assert os.readlink(f'/proc/self/fd/{{file.fileno()}}') == {self.script!r}; file.close(); "
                 f"sys.argv = [{HOOK!r}, sys.argv[-1]]; runpy.run_path({HOOK!r}, run_name='__main__')")
        p = self.start("-p", program=(sys.executable, "-c", begin))
        while not os.path.exists(mark):
            time.sleep(0.01)
        self.check(self.claim(p, "echo $WAY"), "warm", "warm\n")

    def test_time_of_waiting_is_not_the_programs(self):
        r = self.run_warm("exit 0", word="busy")
        self.assertLess(r.report["cpuUs"], 400_000)
        p = self.start(word="busy")
        self.await_word(p, "started")
        r = self.claim(p, "exit 0", args=["x" * 30_000] * 3)
        self.assertEqual(r.started, "new")
        self.assertLess(r.report["cpuUs"], 400_000)

    def test_waiting_without_an_interpreter(self):
        p = sbx.start([*self.prefix, base.ENTRY, "-C", self.data, self.script, "sh", self.script], b"")
        self.addCleanup(self.end, p)
        self.await_word(p, "started")
        self.check(self.claim(p, "echo 1"), "new", "1\n")

    def test_server_gone_while_it_waits(self):
        p = self.start("-l", OBJECT)
        self.await_word(p, "started")
        p.stdin.close()
        self.assertEqual((p.wait(timeout=60), p.stderr.read()), (0, b""))
        self.assertEqual(sbx.alive(self.script), [])

    def test_names_at_the_wrong_time(self):
        names = sbx.preload("a")
        for data in (sbx.program("sleep 1") + names, names + names, sbx.preload("n" * 2000)):
            p = self.start()
            self.send(p, data)
            self.assertEqual(p.wait(timeout=60), 125)
            self.assertIn(b"bad record", p.stderr.read())

    def test_report_comes_before_the_memory_is_gone(self):
        r = self.run_warm("setsid sleep 0.1 & echo x", "-l", OBJECT)
        self.check(r, "warm", "x\n")

    def test_stays_until_the_server_hangs_up(self):
        p = self.start()
        self.await_word(p, "started")
        self.send(p, sbx.program("exit 5"))
        stream = sbx.frames(p.stdout)
        while next(stream)[0] != "R":
            pass
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        p.stdin.close()
        self.assertEqual(p.wait(timeout=60), 0)


PYTHON_PROGRAM = """
import os, sys
print(sorted(vars()), sys.argv[1:], sys.orig_argv[-1], input(), os.environ.get("X"), os.environ.get("LD_PRELOAD"))
print(sorted(os.listdir("/proc/self/fd")), [name for name in sys.modules if "warm" == name])
try:
    os.wait()
except ChildProcessError as nobody:
    print(nobody)
def fail():
    raise ValueError("here")
fail()
"""


class RealPython(Waiting):
    """The Python runner's hook. Another Python than the image's has other things loaded, but they wait alike."""

    prefix = base.NAMESPACE or []

    def setUp(self):
        super().setUp()
        site = os.path.join(self.dir.name, "site")
        os.mkdir(site)
        pathlib.Path(site, "sitecustomize.py").write_text(
            'import os\nif "SANDBOX_HOOK" in os.environ:\n'
            f'    exec(open({str(base.TOP / "runners/workbench/python/warm.py")!r}).read(), {{"__name__": "warm", "add_packages": int}})\n')
        os.environ["PYTHONPATH"] = f"{site}:{self.data}"
        self.addCleanup(os.environ.pop, "PYTHONPATH")

    def command(self, *options, word="", program=(sys.executable,)):
        return super().command("-t", "-l", OBJECT, "-x", "SANDBOX_HOOK=3", *options, program=program)

    def run_cold(self, code, **options):
        return sbx.run([*self.prefix, base.ENTRY, "-C", self.data, self.script, sys.executable, self.script],
                       sbx.program(code, **options))

    def test_the_same_as_cold(self):
        options = {"args": ["a", "-é"], "stdin": "line\nmore", "env": ["X=\udce4".encode("utf-8", "surrogateescape")]}
        cold = self.run_cold(PYTHON_PROGRAM, **options)
        r = self.run_warm(PYTHON_PROGRAM, **options)
        self.assertEqual((cold.started, r.started), ("new", "warm"))
        self.assertEqual((bytes(r.out), bytes(r.err)), (bytes(cold.out), bytes(cold.err)))
        self.assertIn(b"No child processes", bytes(r.out))
        self.check_end(r, 1)

    def test_new_files_are_found(self):
        p = self.start()
        self.await_word(p, "started")
        pathlib.Path(self.data, "helper.py").write_text("x = 5\n")
        self.check(self.claim(p, "import helper; print(helper.x)"), "warm", "5\n")

    def test_a_file_that_shadows_what_is_loaded(self):
        p = self.start()
        self.await_word(p, "started")
        pathlib.Path(self.data, "codecs.py").write_text("x = 5\n")
        self.check(self.claim(p, "print(1)"), "new", "1\n")

    def test_every_byte_of_many_runs(self):
        for i in range(60):
            r = self.run_warm("import sys; sys.stdout.write('x' * 1_000_000); sys.exit(7)")
            self.assertEqual((r.started, len(r.out)), ("warm", 1_000_000))
            self.check_end(r, 7)

    def test_a_killed_template_harms_no_run(self):
        r = self.run_warm("import os, signal\nfor p in os.listdir('/proc'):\n"
                           "    if p.isdigit() and int(p) not in (1, os.getpid()):\n"
                           "        os.kill(int(p), signal.SIGKILL)\nprint('over')")
        self.check(r, "warm", "over\n")

    @unittest.skipUnless(shutil.which("cc"), "no compiler here")
    def test_the_end_of_a_library_that_the_program_loaded(self):
        source = b'#include <unistd.h>\n__attribute__((destructor)) static void end(void) { if (write(1, "end\\n", 4) != 4) _exit(1); }'
        subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{self.data}/end.so", "-xc", "-"], input=source, check=True)
        r = self.run_warm("import ctypes, sys\nctypes.CDLL('./end.so')\nsys.exit(5)")
        self.check(r, "warm", "end\n", code=5)

    def test_output_of_a_daemon(self):
        r = self.run_warm("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(0.1); os.write(1, b'late')\n"
                           "    os._exit(0)\nprint('soon')")
        self.check(r, "warm", "soon\nlate")


class Forked(Claims):
    """A template forks what waits, and never becomes the program itself."""

    def setUp(self):
        super().setUp()
        os.environ["HOOK_TEMPLATE"] = "1"
        self.addCleanup(os.environ.pop, "HOOK_TEMPLATE")

    def command(self, *options, **more):
        return super().command("-t", *options, **more)

    def test_claimed_during_an_import_it_does_not_need(self):
        super().test_claimed_during_an_import_it_does_not_need("warm", "warm\n")

    def test_it_is_lost_before_it_is_up(self):
        self.check(self.run_warm("cat; exit 4", word="lost", stdin="in"), "new", "in", code=4)

    def test_killed_before_it_is_forked(self):
        p = self.start()
        self.await_word(p, "started")
        self.preload(p, "a60")
        time.sleep(0.2)
        self.check(self.claim(p, "echo a60", deadline_ms=300), "warm", "", signal=9, timed_out=True)

    def test_a_program_without_libraries_is_forked_where_there_are_none(self):
        for code in ("", "import os", "import os, sys.path # x", "  from os import path", "text = 'import a'", "import os\r"):
            self.assertEqual(self.forked_for(code), "", code)
        for code in ("import a", "import os, a", "import os; import a", "from os import path; import a", "from .b import c", "import\tos\nimport a",
                     "import os as o", "__import__('a')"):
            self.assertEqual(self.forked_for(code), "loaded", code)

    def test_libraries_that_a_program_demands(self):
        r = self.run_warm('echo "$WAY|$1|$DEMANDED|$(cat)"', load="a0 b0.1", args=["x"], stdin="in")
        self.check(r, "warm", "warm|x|a0b0.1|in\n")
        self.assertEqual(r.loads, ["begun", "done"])

    def test_demanded_before_it_is_up(self):
        p = self.start(word="late")
        self.check(self.claim(p, "echo $WAY $DEMANDED", load="a0"), "warm", "warm a0\n")

    def test_demanded_while_others_are_loaded(self):
        p = self.start()
        self.await_word(p, "started")
        self.preload(p, "a0.3 b60")
        self.check(self.claim(p, "echo $WAY $DEMANDED", load="c0"), "warm", "warm c0\n")

    def test_demanded_in_vain(self):
        for word in ("rather", "broken"):
            self.check(self.run_warm("echo $WAY $(cat)", word=word, load="a0", stdin="in"), "warm", "warm in\n")
        self.check(self.run_warm("echo $WAY$1", word="dead", load="a0", args=["x"]), "new", "x\n")

    def test_its_time_is_over_while_it_waits_for_libraries(self):
        r = self.run_warm("echo never", load="a60", deadline_ms=300)
        self.check(r, None, "", signal=9, timed_out=True)
        self.assertEqual(r.loads, ["begun"])

    def forked_for(self, code):
        """What the hook says of the template that made the interpreter for a program with these lines."""
        p = self.start("-m", "os sys")
        self.preload(p, "a0")
        self.await_word(p, "started")
        self.await_word(p, "preloaded")
        r = self.claim(p, f": <<'END'\n{code}\nEND\necho $LOADED")
        self.assertEqual(r.started, "warm")
        return r.out.decode().strip()

    def test_what_a_run_leaves_ends_while_the_template_stays(self):
        # What a run leaves ends with it; the template does not keep the run from its end.
        r = self.run_warm("setsid sleep 60 >/dev/null 2>&1 & echo x")
        self.check(r, "warm", "x\n")


@unittest.skipUnless(base.NAMESPACE, "no PID namespaces here")
class ForkedAsInit(Forked, Waiting):
    prefix = base.NAMESPACE or []


class ForkedAsOrdinaryProcess(Forked, Waiting):
    pass


@unittest.skipUnless(base.NAMESPACE, "no PID namespaces here")
class WarmAsInit(Claims, Waiting):
    prefix = base.NAMESPACE or []


class WarmAsOrdinaryProcess(Claims, Waiting):
    pass


if __name__ == "__main__":
    report.main((base.ENTRY is None or OBJECT is None) and "runners/common/entry or runners/warm/warm.so has not been built")

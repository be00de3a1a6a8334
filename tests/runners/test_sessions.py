#!/usr/bin/env python3
"""The session drivers: cells one after the other in one interpreter, behind the entry program's mode "serve".

Python by this machine's interpreter, and by that of the runner image; TypeScript in its image. Cases whose engine or image
is missing are skipped; $ENTRY, or runners/common/entry in $builddir or beside the sources, is the entry program.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import report  # noqa: E402
from test_entry import ENTRY, TOP  # noqa: E402

DRIVERS = {"python": TOP / "runners/workbench/python/session.py", "typescript": TOP / "runners/workbench/typescript/session.mjs"}
IMAGE = "sandcgi-runner-workbench"


def has_image():
    return shutil.which("docker") and subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode == 0


class Session:
    """An interpreter that keeps its variables."""

    def __init__(self, psandbox, *argv, **wanted):
        self.psandbox = psandbox
        self.number = psandbox.begin(*argv, control=True, **wanted)
        self.end = psandbox.ends[self.number]
        assert self.record() == {"ready": True}

    def record(self):
        """The next record; None when the interpreter has ended."""
        control = self.end.control

        def is_whole():
            return self.end.over or len(control) >= 4 and len(control) >= 4 + struct.unpack(">I", control[:4])[0]

        self.psandbox.until(is_whole)
        if len(control) < 4:
            return None
        size = 4 + struct.unpack(">I", control[:4])[0]
        data = bytes(control[4:size])
        del control[:size]
        return json.loads(data)

    def cell(self, code, **wanted):
        """Output, errors and exit code of a cell; the exit code is None when the interpreter has ended."""
        self.end.out.clear()
        self.end.err.clear()
        data = json.dumps({"code": code, **wanted}).encode()
        data = struct.pack(">I", len(data)) + data
        for i in range(0, len(data), 65536):
            self.psandbox.tell(self.number, data[i:i + 65536])
        record = self.record()
        return self.end.out.decode(), self.end.err.decode(), record and record["exitCode"]


class Case(unittest.TestCase):
    def open(self, command, *argv, **wanted):
        psandbox = psandboxes.Psandbox(command)
        self.addCleanup(psandbox.close)
        self.session = Session(psandbox, *argv, **wanted)

    def open_image(self, language, *argv):
        if not has_image():
            self.skipTest("no image")
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        shutil.copy(ENTRY, f"{folder.name}/entry")
        shutil.copy(DRIVERS[language], folder.name)
        os.chmod(folder.name, 0o755)
        self.data = f"{folder.name}/data"
        os.mkdir(self.data)
        os.chmod(self.data, 0o777)
        self.open(["docker", "run", "--rm", "-i", "--network", "none", "--read-only", "--user", "1879048192:1879048192", "--tmpfs",
                   "/tmp:rw,exec,nosuid,nodev,size=64m,mode=1777", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
                   "--memory", "256m", "--pids-limit", "128", "--log-driver", "none", "-v", f"{self.data}:/data",
                   "-v", f"{folder.name}:/sandbox:ro", "--entrypoint", "/sandbox/entry", IMAGE, "serve"], *argv)

    def cell(self, code, out="", code_of_end=0, err="", **wanted):
        """Runs a cell; err has to be part of what it says on standard error, or that has to be empty."""
        said, complained, end = self.session.cell(code, **wanted)
        self.assertEqual((said, end), (out, code_of_end), complained)
        if err:
            self.assertIn(err, complained)
        else:
            self.assertEqual(complained, "")
        return complained


class Python:
    def test_variables_functions_and_imports_stay(self):
        self.cell("x = 41\nimport math\ndef f(): return x")
        self.cell("x += 1\nprint(f(), math.floor(2.5), __name__)", "42 2 __main__\n")

    def test_tracebacks_have_the_lines_of_their_cells(self):
        self.cell("def f():\n    # here\n    return 1 / 0")
        said = self.cell("\n\nf()", code_of_end=1, err="ZeroDivisionError: division by zero\n")
        self.assertTrue(said.startswith('Traceback (most recent call last):\n  File "<cell 2>", line 3, in <module>\n    f()\n'))
        self.assertIn('  File "<cell 1>", line 3, in f\n    return 1 / 0\n', said)
        self.assertNotIn("session.py", said)

    def test_a_syntax_error_is_one_of_the_cell(self):
        said = self.cell("x = 1\ny = = 2", code_of_end=1, err="SyntaxError")
        self.assertTrue(said.startswith('  File "<cell 1>", line 2\n'), said)
        self.cell("print('x' in globals())", "False\n")

    def test_exit_ends_the_cell_only(self):
        self.cell("import sys\nx = 1\nsys.exit(7)", code_of_end=7)
        self.cell("sys.exit('so')", code_of_end=1, err="so\n")
        self.cell("sys.exit()")
        self.cell("raise KeyboardInterrupt", code_of_end=130, err="KeyboardInterrupt")
        self.cell("print(x)", "1\n")

    def test_the_end_of_the_interpreter_is_told(self):
        said, _, end = self.session.cell("import os\nprint('last', flush=True)\nos._exit(5)")
        self.assertEqual((said, end, self.session.end.report["exitCode"]), ("last\n", None, 5))

    def test_await_at_the_top(self):
        self.cell("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 3\nr = await f()")
        self.cell("print(r, await f())", "3 3\n")
        self.cell("asyncio.run(f())", "3\n")

    def test_the_last_expression_is_shown(self):
        self.cell("print(0)\n1 + 1", "0\n2\n")
        self.cell("x = 2\nx + 1", "3\n")
        self.cell("_ + 1", "4\n")
        self.cell("'a'; None")
        self.cell("x = 5")
        self.cell("x;")
        self.cell("x", echo=False)

    def test_input_is_at_its_end(self):
        self.cell("input()", code_of_end=1, err="EOFError")
        self.cell("exit(3)", code_of_end=3)
        self.cell("input()", code_of_end=1, err="EOFError")

    def test_a_byte_order_mark_is_passed_over(self):
        self.cell("\ufeffprint(1)", "1\n")

    def test_output_comes_before_the_end(self):
        for n in range(20):
            self.cell(f"import sys; sys.stdout.write('{n}' * 1000)", str(n) * 1000)

    def test_threads_go_on_between_cells(self):
        self.cell("import threading, time\nn = 0\ndef f():\n    global n\n    for _ in range(20):\n        n += 1\n"
                  "        time.sleep(0.01)\nt = threading.Thread(target=f)\nt.start()")
        deadline = time.monotonic() + 20
        while self.session.cell("print(n)")[0] != "20\n":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_a_signal_between_cells_does_not_end_it(self):
        self.cell("import signal\nx = 1\nsignal.signal(signal.SIGALRM, lambda *a: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.1);")
        time.sleep(1.5)
        self.cell("print(x)", "1\n", err="ZeroDivisionError")

    def test_future_statements_stay(self):
        self.cell("from __future__ import annotations")
        self.cell("def f(a: there_is_no_such_thing): pass")

    def test_what_it_defines_can_be_looked_at_and_pickled(self):
        self.cell("import inspect, pickle\nclass A:\n    pass\ndef f():\n    return 1")
        self.cell("print(inspect.getsource(f), end='')", "def f():\n    return 1\n")
        self.cell("print(type(pickle.loads(pickle.dumps(A()))) is A)", "True\n")

    def test_rubbish_on_the_channel_lies_about_itself_only(self):
        self.session.cell("import os\nos.write(3, b'\\0\\0\\0\\2{}')")
        self.assertEqual(self.session.psandbox.run("echo", "fine", cwd="/tmp").out, b"fine\n")

    def test_figures_are_saved_before_the_end_of_a_cell(self):
        self.cell("import sys, types\nfigures = types.ModuleType('_sandbox_figures')\n"
                  "figures.save_open = lambda: print('saved')\nsys.modules['_sandbox_figures'] = figures", "saved\n")
        self.cell("1 / 0", "saved\n", 1, "ZeroDivisionError")
        self.cell("figures.save_open = lambda: 1 / 0", "", 0, "ZeroDivisionError")

    def test_a_large_cell(self):
        self.cell(f"x = '{'y' * 3_000_000}'\nprint(len(x))", "3000000\n")

    def test_output_may_be_closed_or_replaced(self):
        self.cell("import io, sys\nold, sys.stdout = sys.stdout, io.StringIO()\nprint('kept')")
        self.cell("kept, sys.stdout = sys.stdout.getvalue(), old\nprint(kept, end='')", "kept\n")
        self.cell("sys.stdout.close()")
        self.cell("sys.exit(3)", code_of_end=3)


class PythonHere(Python, Case):
    def setUp(self):
        self.open([ENTRY, "serve"], sys.executable, str(DRIVERS["python"]), cwd="/tmp")


class PythonInItsImage(Python, Case):
    def setUp(self):
        self.open_image("python", "python3", "/sandbox/session.py")

    def test_cells_are_those_of_a_notebook(self):
        self.cell("%matplotlib inline\nn = 3")
        self.cell("!echo {n}\nn + 1", "3\n4\n")
        self.cell("%%capture out\nprint('kept')\nn")
        self.cell("out.stdout", "'kept\\n3\\n'\n")
        self.cell("%%capture\n1 / 0", code_of_end=1, err="ZeroDivisionError")
        self.cell("display('shown')\nfrom IPython.display import Markdown\nMarkdown('*x*')", "'shown'\n*x*\n")
        self.cell("    n = 4\n    await asyncio.sleep(0)", code_of_end=1, err="NameError: name 'asyncio'")
        self.cell("n", "4\n")
        said = self.cell("%pwd\n1 / 0", code_of_end=1, err="ZeroDivisionError")
        self.assertIn('line 2, in <module>\n    1 / 0\n', said)

    def test_parts_of_lines_are_seen_while_a_cell_runs(self):
        self.session.cell("import os, time\nprint('half', end='')\ntime.sleep(0.5)\nos._exit(1)")
        self.assertEqual(self.session.end.out, b"half")

    def test_own_files_can_be_imported_and_do_not_disturb(self):
        for name in ("helper", "json", "ast", "codeop"):
            pathlib.Path(self.data, f"{name}.py").write_text("x = 5\n")
        self.cell("import helper\nprint(helper.x)", "5\n")
        session = Session(self.session.psandbox, "python3", "/sandbox/session.py")
        self.assertEqual(session.cell("print(1)")[0], "1\n")


class TypeScript(Case):
    def setUp(self):
        self.open_image("typescript", "bun", "run", "--no-install", "/sandbox/session.mjs")

    def test_whatever_is_declared_stays(self):
        self.cell("let x: number = 41; const y = 2; var z = 3; function f() { return ++x }\nclass K<T> { v = 1 as T }\n"
                  "enum E { A, B }\nimport fs from 'fs'; const { a: [b], ...c } = { a: [5], d: 6 };\nexport const e = 7")
        self.cell("console.log(f(), x, y, z, new K().v, E.B, typeof fs.readFileSync, b, c.d, e)",
                  "42 42 2 3 1 1 function 5 6 7\n")

    def test_functions_and_later_cells_share_their_variables(self):
        self.cell("let n = 0; const count = () => ++n")
        self.cell("count(); n += 10; console.log(count(), n)", "12 12\n")
        self.cell("let n = 100")
        self.cell("console.log(n, count())", "100 13\n")

    def test_constants_are_constant_and_can_be_declared_again(self):
        self.cell("const k = 1")
        self.cell("k = 2", code_of_end=1, err="readonly")
        self.cell("const k = 3; console.log(k)", "3\n")
        self.cell("console.log(k)", "3\n")

    def test_await_and_imports_at_the_top(self):
        self.cell("const { join } = await import('path'); import { basename } from 'path'; await Bun.sleep(10)")
        self.cell("console.log(join('a', 'b'), basename('/x/y'))", "a/b y\n")

    def test_imported_types_are_nothing(self):
        pathlib.Path(self.data, "own.ts").write_text("export const a = 1; export interface T { x: number }\n")
        self.cell("import { a, T } from '/data/own.ts'; const t: T = { x: a }; console.log(t.x)", "1\n")
        self.cell("import { a as again, nothing } from '/data/own.ts'; nothing", code_of_end=1, err="nothing")

    def test_errors_have_the_lines_of_their_cells(self):
        self.cell("interface I { x: number }\n\nfunction bad(): never {\n  throw new TypeError('boom')\n}")
        said = self.cell("type T = string\n\nbad()", code_of_end=1, err="TypeError: boom")
        self.assertRegex(said, r"cell-1\.ts:4:\d+\)\n\s+at \S*cell-2\.ts:3:\d+\n")
        self.cell("let y = ;", code_of_end=1, err="Unexpected ;")

    def test_a_cell_that_fails_keeps_what_it_had_reached(self):
        self.cell("let never = 'old'")
        self.cell("const reached = 1; throw new Error('x'); const never = 2", code_of_end=1, err="error: x")
        self.cell("console.log(reached, never)", "1 old\n")

    def test_uncaught_errors_do_not_end_it(self):
        self.cell("const x = 1; Promise.reject(new Error('rejected'))", code_of_end=1, err="rejected")
        self.cell("setTimeout(() => { throw new Error('later') }, 50)")
        time.sleep(1.5)
        self.cell("console.log(x)", "1\n", err="later")

    def test_exit_ends_the_interpreter(self):
        said, _, end = self.session.cell("console.log('last'); process.exit(4)")
        self.assertEqual((said, end, self.session.end.report["exitCode"]), ("last\n", None, 4))

    def test_names_of_the_world_may_be_declared(self):
        self.cell("const process = 1, console2 = console, name = 'n', status = 2, Buffer = 3; import crypto from 'crypto'")
        self.cell("console2.log(process, name, status, Buffer, typeof crypto.createHash)", "1 n 2 3 function\n")
        self.cell("const Symbol = 4, JSON = 5, Reflect = 6; console2.log(Symbol, JSON, Reflect)", "4 5 6\n")
        self.cell("console2.log(typeof Symbol, typeof JSON)", "function object\n")

    def test_large_output_comes_before_the_end(self):
        self.cell("console.log('x'.repeat(300000))", "x" * 300000 + "\n")
        self.cell("process.stdout.write('y'.repeat(200000))", "y" * 200000)

    def test_timers_go_on_between_cells(self):
        self.cell("let ticks = 0; const timer = setInterval(() => { ticks++ }, 10)")
        time.sleep(1.5)
        self.cell("clearInterval(timer); console.log(ticks > 5)", "true\n")


if __name__ == "__main__":
    report.main(ENTRY is None and "runners/common/entry has not been built")

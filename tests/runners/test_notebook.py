#!/usr/bin/env python3
"""Programs as cells of a notebook, in the image: what is shown, and that nothing else is different. Each in a warm and in a new
interpreter. Skips (77) without an engine or the image."""

import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import report  # noqa: E402
import test_images  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = (TOP / "runners/workbench/languages/python").read_text(encoding="utf-8").split("\n")[-2]
TRACE = f'Traceback (most recent call last):\n  File "{SCRIPT}", line '
# Code, standard output, standard error, exit code (0); a compiled pattern is searched for.
SHOWN = (
    ("x = 5\nprint('a')\nx + 1", "a\n6\n"),
    ("x = None\nx", ""),
    ("x = 5\nx;", ""),
    ("x = 5\nx  ;  # not shown", ""),
    ("'alone'", "'alone'\n"),
    ("(1,\n 2)  # a comment\n\n", "(1, 2)\n"),
    ("\ufeff'Äß'", "'Äß'\n"),
    ("# -*- coding: latin-1 -*-\n5", "5\n"),
    ("def f():\n    return 3\n\nif __name__ == '__main__':\n    f()", ""),
    ("import sys\nsys.stdout.write('n\\n')", "n\n"),
    ("open('/tmp/n', 'w')", ""),
    ("list(range(1000))", re.compile(r"^\[0, 1, .*98, 99, …\] \(1,000 items\)\n$")),
    ("'a' * 9999", re.compile(r"^'a{2999} … a+' \(10,001 characters\)\n$")),
    ("import subprocess\nsubprocess.run('true')", ""),
    ("import subprocess\nsubprocess.run('false')", "CompletedProcess(args='false', returncode=1)\n"),
    ("display('a', 5)\ndisplay(None)", "'a'\n5\nNone\n"),
    ("def display(x):\n    print('mine', x)\ndisplay(1)", "mine 1\n"),
)
# A last value does no harm.
HARMLESS = (
    ("class A:\n    def __repr__(self):\n        1 / 0\nprint(1)\nA()", "1\n", "the value of type A could not be shown: ZeroDivisionError\n"),
    ("class A:\n    def __repr__(self):\n        raise SystemExit(3)\nA()", "", "the value of type A could not be shown: SystemExit\n"),
    ("class A:\n    def __repr__(self):\n        while True: pass\nA()", "", "the value of type A could not be shown: more than 5 s\n"),
    ("class A:\n    __class__ = property(lambda self: 1 / 0)\n    def __repr__(self): return 'A'\nA()", "A\n"),
    ("class A:\n    def __getattribute__(self, name): raise KeyboardInterrupt\nA()", re.compile("^<__main__.A object at")),
    ("class A:\n    def __repr__(self): return 5\nA()", "", "the value of type A could not be shown: TypeError\n"),
)
HABITS = (
    ("%matplotlib inline\n%load_ext autoreload\n%config x.y = 'z'\nprint(1)", "1\n"),
    ("for i in range(2):\n    !echo {i} {i * 2:02d} $i '$HOME' {not this}\n", "0 00 0 $HOME {not this}\n1 02 1 $HOME {not this}\n"),
    ("x = !printf 'a\\nb\\n'\nx", "['a', 'b']\n"),
    ("x = %pwd\nprint(x)\n%cd /tmp\n", "/data\n/tmp\n"),
    ("s = '''\n%no magic\n!no command\n'''\n!true\ns", "'\\n%no magic\\n!no command\\n'\n"),
    ("a = 7 \\\n  % 4\n%unknown\na", "3\n", "%unknown is not known here, and was left out\n"),
    ("a = (7\n% 4)\n!true\na", "3\n"),
    ("%%time\nx = 3\nx", re.compile(r"^3\nCPU times: .*\nWall time: .*\n$")),
    ("%time y = 5\ny", re.compile(r"^CPU times: .*\nWall time: .*\n5\n$")),
    ("%timeit -n 2 -r 3 1 + 1", re.compile(r"per loop \(mean ± std\. dev\. of 3 runs, 2 loops each\)\n$")),
    ("%%timeit x = 5\nx + 1", re.compile(r"per loop")),
    ("%%bash\necho $((1 + 1)); for i in a b; do echo $i; done", "2\na\nb\n"),
    ("# first\n%%writefile made.py\nprint('made')\n", "Writing made.py\n"),
    ("%%capture out\nprint('kept')\n", ""),
    ("def f(): print('ran')\n%lprun -f f f()", "ran\n"),
    ("%%sql\nSELECT 1;", "", "%%sql is not known here, and its cell was left out\n"),
    ("import math\nmath.pi?\n?len", re.compile("Return the number of items in a container")),
    ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 4\nawait f()", "4\n"),
    ("async def f():\n    for x in 1, 2:\n        yield x\nasync for x in f():\n    print(x)\n[x async for x in f()]", "1\n2\n[1, 2]\n"),
    ("    x = 1\n    if x:\n        print('indented')\n    x", "indented\n1\n"),
    ("%env NAME=value\nimport os\nos.environ['NAME']", "env: NAME=value\n'value'\n"),
    ("get_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('echo 1')", "1\n"),
    ("a = 1\ndef f(): pass\n%who", "a  f\n"),
    ("from IPython.display import display, HTML, Markdown, clear_output\nclear_output()\ndisplay(Markdown('# T'))\n"
     "HTML('<h1>A &amp; B</h1><table><tr><td>1</td><td>2</td></tr></table>')", "# T\nA & B\n1\t2\n"),
    ("!pip install no-such\n%pip install -q numpy\n!pip install docx", "Requirement already satisfied: python-docx: import docx\n",
     "no-such is not installed: install_package\n"),
    ("pip install pandas\nprint(1)", "Requirement already satisfied: pandas: import pandas\n1\n"),
)
# As Python says it, with the lines that were written.
ERRORS = (
    ("x = 1\n1 / 0", "", TRACE + "2, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n", 1),
    ("x = 1\n(x +\n 'a')", "", re.compile(r"line 2, in <module>\n    \(x \+\n     ~~\^\n     'a'\)\n"), 1),
    ("%matplotlib inline\n1 / 0", "", TRACE + "2, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n", 1),
    ("%matplotlib inline\ny = = 2", "", f'  File "{SCRIPT}", line 2\n    y = = 2\n        ^\nSyntaxError: invalid syntax\n', 1),
    ("y = = 2\n", "", f'  File "{SCRIPT}", line 1\n    y = = 2\n        ^\nSyntaxError: invalid syntax\n', 1),
    ("async def f():\n    1 / 0\nawait f()", "", TRACE + "3, in <module>\n    await f()\n" +
     f'  File "{SCRIPT}", line 2, in f\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n', 1),
    ("import sys\nprint('\\d')\nsys.exit(3)", "\\d\n", re.compile(r"script.py:2: SyntaxWarning: invalid escape sequence '\\d'\n  print\('\\d'\)\n$"), 3),
    ("import sys\nsys.exit('so')", "", "so\n", 1),
)
# A program sees itself as it was written.
ITSELF = (
    ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f), end='')\nopen(__file__).read().count('\\n')", "def f(): return 1\n3\n"),
    ("import sys\nprint(sys.argv, __name__, __file__, type(__loader__).__name__, __spec__, __doc__)\n5", f"['{SCRIPT}'] __main__ {SCRIPT} SourceFileLoader None None\n5\n"),
    ("import os\nfolder, name = os.path.split(__file__)\n[one == name for one in os.listdir(folder) if name in one]", "[True]\n"),
    ("import sys\n[name for name in sys.modules if 'sandbox' in name]", "[]\n"),
    ("import multiprocessing\ndef f(x): return x * x\nif __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
     "        print(pool.map(f, [2]))\n    !echo ran\n__name__ == '__mp_main__'", "[4]\nran\nFalse\n"),
    ("import atexit, threading\natexit.register(print, 'end')\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n1", "thread\n1\nend\n"),
    ("import doctest\ndef f():\n    '''\n    >>> f()\n    2\n    '''\n    return 2\ndoctest.testmod()", "TestResults(failed=0, attempted=1)\n"),
)
# Code, files, standard error.
PICTURES = (
    ("import matplotlib\nmatplotlib.use('TkAgg')\nimport matplotlib.pyplot as plt\nplt.plot([1])", ["figure-1.png"], ""),
    ("%matplotlib widget\nimport matplotlib.pyplot as plt\nplt.switch_backend('nbagg')\nfig, ax = plt.subplots()\nax.plot([1])\nfig", ["figure-1.png"], ""),
    ("from PIL import Image\nImage.new('RGB', (4, 3)).save('/tmp/a.png')\nImage.open('/tmp/a.png')", ["figure-1.png"], ""),
    ("from PIL import Image\nimage = Image.new('RGB', (40, 30))\nimage.save('card.png')\nimage.show()\nimage", ["card.png"], ""),
    ("from PIL import Image\nimage = Image.new('RGB', (40, 30))\nimage.save('card.png')\nimage.putpixel((0, 0), (1, 2, 3))\nimage.show()",
     ["card.png", "figure-1.png"], ""),
    ("import matplotlib.pyplot as plt, matplotlib.animation as animation\nfig, ax = plt.subplots()\nline, = ax.plot([0, 1])\n"
     "animation.FuncAnimation(fig, lambda i: line.set_ydata([0, i]), frames=2).save('a.gif', writer='pillow')", ["a.gif"], ""),
    ("import plotly.express as px\nfig = px.scatter(x=[1], y=[2])\nfig.show()\nfig", ["figure-1.html"], "there is no browser here: the page is figure-1.html\n"),
    ("import altair\nchart = altair.Chart(altair.Data(values=[{'a': 1}])).mark_bar()\nchart.show()\nchart", ["figure-1.html"],
     "there is no browser here: the page is figure-1.html\n"),
    ("import graphviz\ngraphviz.Source('digraph { a -> b }')", ["figure-1.png"], ""),
    ("from IPython.display import Audio\nAudio([0.5, -0.5] * 100, rate=8000)", ["audio-1.wav"], ""),
    ("import matplotlib.pyplot as plt\nplt.rcParams['font.family'] = 'No Such'\nplt.title('\\U00013000\\U00013001'); plt.savefig('a.png'); plt.savefig('b.png')",
     ["a.png", "b.png"], re.compile(r"^findfont: [^\n]*\n[^\n]*Glyph 77824 [^\n]*\n[^\n]*\n$")),
)
WAYS = {"warm": (), "new": ("LC_SOME=1",)}


class Notebook(test_images.Images):
    def setUp(self):
        super().setUp()
        self.container = psandboxes.Psandbox(self.command(memory="512m"))
        self.addCleanup(self.container.close)

    def run_here(self, code, way):
        end = self.container.run(code=code.encode(), language="python", env=WAYS[way])
        self.assertEqual((self.container.next(), end.started), (None, way))
        return end.out.decode(), end.err.decode(), end.report["exitCode"]

    def compare(self, said, wanted):
        if isinstance(wanted, re.Pattern):
            self.assertRegex(said, wanted)
        else:
            self.assertEqual(said, wanted)

    def attempt(self, rows):
        for code, out, err, status in ((*row, "", 0)[:4] if len(row) == 2 else (*row, 0)[:4] for row in rows):
            for way in WAYS:
                with self.subTest(code=code, way=way):
                    said = self.run_here(code, way)
                    self.compare(said[0], out)
                    self.compare(said[1], err)
                    self.assertEqual(said[2], status, said)

    def test_the_last_value_is_shown(self):
        self.attempt(SHOWN)

    def test_a_last_value_does_no_harm(self):
        self.attempt(HARMLESS)

    def test_magics_and_commands(self):
        self.attempt(HABITS)

    def test_errors_are_pythons(self):
        self.attempt(ERRORS)

    def test_a_program_sees_itself_as_it_was_written(self):
        self.attempt(ITSELF)

    def test_pictures(self):
        for code, files, err in PICTURES:
            with self.subTest(code=code):
                for name in os.listdir(self.dir.name):
                    os.unlink(f"{self.dir.name}/{name}")
                _, said, status = self.run_here(code, "warm")
                self.compare(said, err)
                self.assertEqual((status, sorted(os.listdir(self.dir.name))), (0, files))

    def test_parts_of_lines_survive_a_kill(self):
        for way in WAYS:
            said = self.run_here("import os, time\nfor n in range(50): print(n, end=' ')\ntime.sleep(0.5)\nos.kill(os.getpid(), 9)", way)
            self.assertEqual(said, (" ".join(map(str, range(50))) + " ", "", -1))


for name in dir(test_images.Images):
    if name.startswith("test_"):
        setattr(Notebook, name, None)


if __name__ == "__main__":
    report.main(test_images.ENGINE is None and "no container engine answers")

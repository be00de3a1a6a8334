"""What notebooks have beside Python: `%magic`, `%%magic`, `!command`, `name?`, and code that is indented as a whole.

In the image this is the module `_sandbox_magics`. `translate` makes Python of it, line by line; the rest is what that calls.
"""

import importlib
import io
import linecache
import os
import re
import subprocess
import sys
import textwrap
import time

US = "__import__('_sandbox_magics')"
END = US + ".end()"
CALL = re.compile(r"(?P<indent>\s*)(?:%(?P<magic>[A-Za-z_]\w*)(?P<rest>.*)|!!?(?P<command>.*)"
                  r"|(?P<install>(?:pip3?|conda|mamba|apt|apt-get|npm)\s+(?:install|uninstall|list|show|freeze)\b.*)"
                  r"|\?{1,2}(?P<asked>[\w.]+)|(?P<asked_too>[\w.]+)\?{1,2};?\s*)$", re.S)
VALUE = re.compile(r"(?P<target>\s*[A-Za-z_][\w.,\[\]'\" ]*=\s*)(?:%(?P<magic>\w+)(?P<rest>.*)|!(?P<command>.*))$", re.S)
CELL = re.compile(r"%%(!|\w+)(.*)$", re.S)
PART = re.compile(r"#|'''|\"\"\"|'|\"|[()\[\]{}]|\\.?", re.S)
INTERRUPTED = 130
# The magics whose cell is the program itself.
AROUND = ("time", "capture", "prun", "memit", "mprun", "lprun")


# ---- translation ----


class Lines:
    """Knows at which of a source's lines a statement begins."""

    def __init__(self):
        self.depth = 0
        self.quote = None
        self.joined = False

    def begins(self):
        return not (self.depth or self.quote or self.joined)

    def pass_by(self, line):
        self.joined, at = line.endswith("\\"), 0
        while found := PART.search(line, at):
            at, part = found.end(), found.group()
            if self.quote:
                if part[0] == self.quote[0] and len(part) >= len(self.quote):
                    at, self.quote = found.start() + len(self.quote), None
            elif part == "#":
                self.joined = False
                break
            elif part[0] in "'\"":
                self.quote = part
            elif part in "([{":
                self.depth += 1
            elif part in ")]}":
                self.depth = max(0, self.depth - 1)
        if self.quote and len(self.quote) == 1 and not self.joined:
            self.quote = None


def call_of(line):
    """Python that does what the line says; None: it is Python."""
    found = VALUE.match(line)
    if found:
        if found["magic"]:
            return f"{found['target']}{US}.line({found['magic']!r}, {found['rest'].strip()!r})"
        return f"{found['target']}{US}.lines({found['command']!r})"
    found = CALL.match(line)
    if not found:
        return None
    if found["magic"]:
        return f"{found['indent']}{US}.line({found['magic']!r}, {found['rest'].strip()!r})"
    command = found["command"] or found["install"]
    if command:
        return f"{found['indent']}{US}.system({command!r})"
    asked = found["asked"] or found["asked_too"]
    return f"{found['indent']}{US}.describe({asked!r})" if asked else f"{found['indent']}pass"


def join(lines, at):
    """The line there with those that continue it, if it is no Python, and how many these are."""
    line, n = lines[at], 1
    while line.endswith("\\") and at + n < len(lines) and call_of(line):
        line, n = line[:-1] + " " + lines[at + n].lstrip(), n + 1
    return line, n


def translate_lines(lines):
    """As many lines of Python, and END behind them if the cell's magic goes around it."""
    known, done, at, ending = Lines(), [], 0, []
    while at < len(lines):
        line, n = join(lines, at) if known.begins() else (lines[at], 1)
        new = call_of(line) if known.begins() else None
        cell = CELL.match(line) if known.begins() else None
        if cell and cell[1] in AROUND:
            new, ending = f"{US}.begin({cell[1]!r}, {cell[2].strip()!r})", [END]
        elif cell:
            return [*done, f"{US}.cell({cell[1]!r}, {cell[2].strip()!r}, {chr(10).join(lines[at + 1:])!r})"]
        if new is None:
            known.pass_by(lines[at])
        done += [lines[at]] if new is None else [new] + [""] * (n - 1)
        at += n if new else 1
    return done + ending


def translate(source):
    """The source as Python, and the lines as they are to be seen; None if there is nothing to translate."""
    try:
        text = source.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None, None
    if text.lstrip("\n")[:1] in (" ", "\t"):
        text = textwrap.dedent(text)
    new = "\n".join(translate_lines(text.split("\n"))).encode()
    return (None, None) if new == source else (new, text)


def is_untouched(source, new, number):
    """Whether a line is what it was, so that what is wrong with it is told at the program itself."""
    lines, before = new.splitlines(), source.splitlines()
    return number is not None and number <= min(len(lines), len(before)) and lines[number - 1].strip() == before[number - 1].strip()


def remember(path, text):
    """Tracebacks show what was written. An entry without a time of change is not compared with the file."""
    linecache.cache[path] = (len(text), None, [line + "\n" for line in text.split("\n")], path)


# ---- what it calls ----


def tell(text):
    print(text, file=sys.stderr)


def caller():
    """The names that the program sees where it calls."""
    frame = sys._getframe(1)
    while frame.f_globals is globals():
        frame = frame.f_back
    return frame.f_globals, frame.f_locals


def expand(command):
    """{expression} and $name, where the program has them; all else is the shell's."""
    names = caller()

    def value(found):
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[2] is not None and found[2] not in names[0] and found[2] not in names[1]:
            return found[0]
        try:
            return eval('f"{' + (found[1] or found[2]) + '}"', *names)
        except Exception:
            return found[0]

    return re.sub(r"\{\{|\}\}|\{([^{}]+)\}|\$([A-Za-z_]\w*)", value, command)


def find_installed():
    add = getattr(sys.modules.get("sitecustomize"), "add_packages", None)
    if add:
        add()
    importlib.invalidate_caches()


def shell(command, **options):
    sys.stdout.flush()
    return subprocess.run(["bash", "-c", expand(command)], check=False, **options)


def system(command):
    """Where output is captured, its own is, too."""
    plain = sys.stdout is sys.__stdout__
    ended = shell(command, stdout=None if plain else subprocess.PIPE)
    if not plain:
        sys.stdout.write(ended.stdout.decode(errors="replace"))
    if "install" in command:
        find_installed()


class Output(list):
    """The lines that a command has printed."""

    @property
    def n(self):
        return "\n".join(self)

    @property
    def s(self):
        return " ".join(self)

    l = property(list)
    nlstr, spstr = n, s


def lines(command):
    return Output(shell(command, stdout=subprocess.PIPE).stdout.decode(errors="replace").splitlines())


def describe(name):
    try:
        thing = eval(name, *caller())
    except Exception:
        tell(f"{name} is not there")
        return
    import pydoc

    print(pydoc.plain(pydoc.render_doc(thing, "%s")).strip()[:4000])


def seconds(value):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def run(code):
    """An expression's value, or None."""
    names = caller()
    try:
        compiled = compile(code, "<magic>", "eval")
    except SyntaxError:
        exec(compile(code, "<magic>", "exec"), *names)
        return None
    return eval(compiled, *names)


class Watch:
    def __init__(self):
        self.wall, self.used = time.perf_counter(), os.times()

    def tell(self):
        now = os.times()
        user, system_ = now.user - self.used.user, now.system - self.used.system
        print(f"CPU times: user {seconds(user)}, sys: {seconds(system_)}, total: {seconds(user + system_)}\n"
              f"Wall time: {seconds(time.perf_counter() - self.wall)}")


def measure(code):
    watch = Watch()
    try:
        return run(code)
    finally:
        watch.tell()


def repeat(rest, body=None):
    """%timeit, and %%timeit, whose line is the preparation."""
    import shlex
    import statistics
    import timeit

    options = re.match(r"((?:-(?:[nr]\s*\d+|[a-zA-Z])\s+)*)(.*)", rest + " ", re.S)
    given = dict(re.findall(r"-([nr])\s*(\d+)", " ".join(shlex.split(options[1]))))
    code = options[2].strip() if body is None else body
    timer = timeit.Timer(code, options[2].strip() or "pass" if body is not None else "pass", globals={**caller()[0], **caller()[1]})
    number = int(given.get("n", 0)) or timer.autorange()[0]
    times = [one / number for one in timer.repeat(int(given.get("r", 7)), number)]
    print(f"{seconds(statistics.mean(times))} ± {seconds(statistics.pstdev(times))} per loop (mean ± std. dev. of {len(times)} runs, "
          f"{number:,} loop{'s' * (number > 1)} each)")


def profile(rest):
    """What only measures runs."""
    return run(re.sub(r"^(-[A-Za-z]\s+\S+\s+)+", "", rest))


def change_folder(rest):
    os.chdir(os.path.expanduser(expand(rest).strip("'\"") or "~"))
    print(os.getcwd())


def environment(rest):
    if not rest:
        return dict(os.environ)
    name, _, value = rest.replace("=", " ", 1).partition(" ")
    if not value.strip():
        return os.environ.get(name)
    os.environ[name] = expand(value.strip())
    print(f"env: {name}={os.environ[name]}")
    return None


def names_of_user():
    main = sys.modules["__main__"].__dict__
    return sorted(name for name, value in main.items() if name[:1] != "_" and type(value) is not type(sys))


def who(_rest):
    print("  ".join(names_of_user()) or "no names")


def whos(_rest):
    main = sys.modules["__main__"].__dict__
    for name in names_of_user():
        print(f"{name:15} {type(main[name]).__name__:12} {' '.join(repr(main[name])[:200].split())[:60]}")


def run_file(rest):
    import runpy
    import shlex

    path, *arguments = shlex.split(expand(rest).removeprefix("-i "))
    before, sys.argv = sys.argv, [path, *arguments]
    try:
        space = runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv = before
    caller()[0].update((name, value) for name, value in space.items() if name[:2] != "__")


def pylab(_rest):
    run("import numpy as np, numpy, matplotlib, matplotlib.pyplot as plt\nfrom numpy import *\nfrom matplotlib.pyplot import *")


def nothing(_rest):
    """What a notebook needs, and a program does not."""


LINES = {
    **dict.fromkeys(("matplotlib", "config", "load_ext", "reload_ext", "unload_ext", "autoreload", "aimport", "precision", "automagic", "autosave",
                     "xmode", "pdb", "colors", "gui", "pprint", "page", "notebook", "reset", "reset_selective", "history", "logstart"), nothing),
    "pip": lambda rest: system(f"pip {rest}"), "conda": lambda rest: system(f"conda {rest}"), "mamba": lambda rest: system(f"mamba {rest}"),
    "uv": lambda rest: system(f"uv {rest}"),
    **{name: lambda rest, name=name: system(f"{name} {rest}") for name in ("ls", "cat", "mkdir", "rm", "rmdir", "cp", "mv", "head", "tail", "less", "man")},
    "ll": lambda rest: system(f"ls -l {rest}"), "system": lines, "sx": lines, "sc": lines,
    "cd": change_folder, "pwd": lambda _rest: os.getcwd(), "env": environment, "set_env": environment,
    "time": measure, "timeit": repeat, **dict.fromkeys(("prun", "memit", "mprun", "lprun"), profile),
    "who": who, "who_ls": lambda _rest: names_of_user(), "whos": whos, "run": run_file, "pylab": pylab,
    "pinfo": describe, "pinfo2": describe, "pdoc": describe,
}


def line(name, rest):
    work = LINES.get(name)
    if not work:
        tell(f"%{name} is not known here, and was left out")
        return None
    return work(rest)


def write_file(rest, body):
    append, path = rest.startswith("-a "), os.path.expanduser(expand(rest.removeprefix("-a ")).strip("'\""))
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(body.strip("\n") + "\n")
    print(f"{'Appending to' if append else 'Writing'} {path}")


def run_script(program):
    def work(_rest, body):
        sys.stdout.flush()
        plain = sys.stdout is sys.__stdout__
        ended = subprocess.run([program], input=body.encode() + b"\n", check=False, stdout=None if plain else subprocess.PIPE)
        if not plain:
            sys.stdout.write(ended.stdout.decode(errors="replace"))
        find_installed()

    return work


def show_as(kind):
    def work(_rest, body):
        import _sandbox_show

        _sandbox_show.display_text(kind, body)

    return work


CELLS = {
    **{name: run_script(program) for name, program in (("bash", "bash"), ("sh", "sh"), ("shell", "bash"), ("!", "bash"), ("system", "bash"), ("sx", "bash"),
                                                       ("python", "python3"), ("python3", "python3"), ("perl", "perl"), ("ruby", "ruby"),
                                                       ("node", "node"), ("R", "Rscript"))},
    "script": lambda rest, body: run_script(rest.split()[0])(rest, body),
    "writefile": write_file, "file": write_file, "timeit": repeat,
    **{name: show_as(kind) for name, kind in (("html", "HTML"), ("HTML", "HTML"), ("markdown", "Markdown"), ("latex", "Latex"), ("svg", "SVG"), ("SVG", "SVG"))},
}


def cell(name, rest, body):
    work = CELLS.get(name)
    if not work:
        tell(f"%%{name} is not known here, and its cell was left out")
        return
    work(rest, body)


class Captured(io.StringIO):
    """What %%capture NAME keeps."""

    stderr, outputs = "", ()

    @property
    def stdout(self):
        return self.getvalue()

    __str__ = io.StringIO.getvalue

    def show(self):
        print(self.getvalue(), end="")

    __call__ = show


around = []  # how the cells that have begun end


def begin(name, rest):
    if name == "time":
        around.append(Watch().tell)
    elif name == "capture":
        before, sys.stdout = sys.stdout, Captured()
        words = [word for word in rest.split() if word[0] != "-"]
        if words:
            caller()[0][words[0]] = sys.stdout
        around.append(lambda: setattr(sys, "stdout", before))


def end():
    """Of a cell, also of one that failed."""
    while around:
        around.pop()()


class Shell:
    """What get_ipython() gives: programs that were exported from a notebook call these."""

    config = {}
    run_line_magic = magic = staticmethod(lambda name, rest="", *_, **__: line(*f"{name.lstrip('%')} {rest}".strip().partition(" ")[::2]))
    run_cell_magic = staticmethod(lambda name, rest, body: run(body) if name in AROUND else cell(name, rest, body))
    system, getoutput = staticmethod(system), staticmethod(lines)

    @property
    def user_ns(self):
        return sys.modules["__main__"].__dict__

    def do_nothing(self, *_arguments, **_options):
        """What belongs to a page or a terminal that there is not."""

    enable_gui = enable_matplotlib = set_next_input = set_custom_exc = register_magics = register_magic_function = do_nothing


def shell_of(frame):
    """For IPython's get_ipython, which libraries ask whether this is a notebook."""
    return Shell() if frame.f_globals.get("__name__") == "__main__" else None


def run_coroutine(coroutine, path):
    """Of a whole program; its traceback begins with the program's own lines."""
    import asyncio

    try:
        asyncio.run(coroutine)
    except SystemExit:
        raise
    except BaseException as problem:
        tb = problem.__traceback__
        while tb.tb_next and tb.tb_frame.f_code.co_filename != path:
            tb = tb.tb_next
        sys.last_exc, sys.last_type, sys.last_value, sys.last_traceback = problem, type(problem), problem, tb
        sys.excepthook(type(problem), problem.with_traceback(tb), tb)
        raise SystemExit(INTERRUPTED if type(problem) is KeyboardInterrupt else 1) from None

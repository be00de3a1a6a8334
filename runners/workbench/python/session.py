"""Runs cells of Python one after the other in one lasting namespace, in a container that stays.

Descriptor 3 leads to the server. Records go both ways, a length of four bytes (big-endian) and JSON: to us
{"code": …, "echo": bool (true), "input": …, "args": […], "env": ["NAME=value", …]}, from us {"ready": true} once and {"done": true, "exitCode": n} behind the output of each cell.
What a program does to this file's doings, it does to itself only.
"""

import os
import sys

# The working directory may have files with the names of modules; what is imported here is Python's own.
path = sys.path[1:]
sys.path[:] = [place for place in path if place not in os.environ.get("PYTHONPATH", "").split(":")]

import ast  # noqa: E402
import builtins  # noqa: E402
import codeop  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import linecache  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402

sys.path[:] = ["", *path]

CHANNEL = 3
INPUT = os.memfd_create("stdin")
FAILED = 1
INTERRUPTED = 130
# Calls whose value is not shown.
SILENT = ("print", "open"), ("write", "writelines", "write_text", "write_bytes", "register")  # functions, methods


def print_error(error):
    """The traceback from the first frame of a cell on; a hook of the program's own comes first."""
    tb = error.__traceback__
    while tb and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    error = error.with_traceback(tb)
    sys.last_exc, sys.last_type, sys.last_value, sys.last_traceback = error, type(error), error, tb
    try:
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(type(error), error, tb)
        else:
            sys.excepthook(type(error), error, tb)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)


def save_figures():
    """What the image does about open figures when a program ends, it does at the end of a cell."""
    figures = sys.modules.get("_sandbox_figures")
    if figures is None:
        return
    try:
        figures.save_open()
    except BaseException as error:
        print_error(error)


def add_packages():
    """What was installed into the conversation since the last cell, where the image knows about it."""
    add = getattr(sys.modules.get("sitecustomize"), "add_packages", None)
    try:
        if add:
            add()
    except BaseException as error:
        print_error(error)


def load_image():
    """What the image has for programs that are written as cells; nothing where it is another."""
    load = getattr(sys.modules.get("sitecustomize"), "load", None)
    return load("program") if load else {}


def translate(source, name):
    """What the image makes of a cell that is not Python; None: nothing."""
    try:
        import _sandbox_magics as magics
    except ImportError:
        return None
    text, written = magics.translate(source.encode(errors="replace"))
    if text is not None:
        magics.remember(name, written)
        text = text.removesuffix(magics.END.encode())  # end_magics
    return text


def end_magics():
    magics = sys.modules.get("_sandbox_magics")
    if magics:
        magics.end()


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except BaseException:
            pass


def exit_code(error):
    """What the interpreter would make of sys.exit."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return FAILED


def begin(cell):
    """Input and arguments are the cell's alone, and a new sys.stdin each time; variables of the environment stay."""
    sys.argv = ["", *cell.get("args", [])]
    for item in cell.get("env", []):
        name, _, value = item.partition("=")
        os.environ[name] = value
    os.dup2(INPUT, 0)  # whatever the program has made of 0
    os.ftruncate(0, 0)
    os.lseek(0, 0, os.SEEK_SET)
    with open(0, "wb", closefd=False) as file:
        file.write(cell.get("input", "").encode(errors="surrogatepass"))
    os.lseek(0, 0, os.SEEK_SET)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)


class Channel:
    """The way to the server."""

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                part = os.read(CHANNEL, size - len(data))
            except OSError:
                os._exit(FAILED)
            except BaseException as error:  # a signal handler of the program's that raises while nothing runs
                print_error(error)
                continue
            if not part:
                sys.exit(0)
            data += part
        return data

    def receive(self):
        return json.loads(self.read(int.from_bytes(self.read(4), "big")))

    def send(self, record):
        data = json.dumps(record).encode()
        data = len(data).to_bytes(4, "big") + data
        while data:
            data = data[os.write(CHANNEL, data):]


def is_shown(tree, source):
    """Whether the last statement is a value, with no semicolon behind it."""
    last = tree.body[-1] if tree.body else None
    called = getattr(getattr(last, "value", None), "func", None)
    if not isinstance(last, ast.Expr) or getattr(called, "id", "") in SILENT[0] or getattr(called, "attr", "") in SILENT[1]:
        return False
    line = source.splitlines()[last.end_lineno - 1]
    return not line[last.end_col_offset:].lstrip().startswith(b";")


class Session:
    """The namespace, a module `__main__`, and what runs cells in it."""

    def __init__(self):
        self.main = types.ModuleType("__main__")
        self.main.__builtins__ = builtins
        self.driver = sys.modules["__main__"]
        sys.modules["__main__"] = self.main
        self.compiler = codeop.Compile()
        self.compiler.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.cells = 0
        self.loop = None

    def await_all(self, coroutine):
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        return self.loop.run_until_complete(coroutine)

    def execute(self, tree, name, mode):
        code = self.compiler(tree, name, mode)
        result = eval(code, self.main.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            self.await_all(result)

    def parse(self, source, name):
        """The tree, and the bytes that it is of."""
        flags = self.compiler.flags | ast.PyCF_ONLY_AST
        try:
            return compile(source, name, "exec", flags, True), source.encode(errors="replace")
        except SyntaxError:
            text = translate(source, name)
            if text is None:
                raise
        return compile(text, name, "exec", flags, True), text

    def run(self, source, echo):
        """Runs one cell; its exit code."""
        self.cells += 1
        name = f"<cell {self.cells}>"
        source = source.removeprefix("\ufeff")
        linecache.cache[name] = (len(source), None, [line + "\n" for line in source.splitlines()], name)
        try:
            tree, text = self.parse(source, name)
            last = tree.body.pop() if echo and is_shown(tree, text) else None
            self.execute(tree, name, "exec")
            if last:
                self.execute(ast.Interactive([last]), name, "single")
        except SystemExit as error:
            return exit_code(error)
        except KeyboardInterrupt as error:
            print_error(error)
            return INTERRUPTED
        except BaseException as error:
            print_error(error)
            return FAILED
        return 0


def serve():
    os.set_inheritable(CHANNEL, False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    image = load_image()
    if image:
        image["lend"]()
        sys.displayhook = image["show_in_session"]
    channel, session = Channel(), Session()
    channel.send({"ready": True})
    while True:
        cell = channel.receive()
        add_packages()
        begin(cell)
        stop = image["flush_often"]() if image and image["prints_parts"](cell["code"].encode(errors="replace")) else int
        code = session.run(cell["code"], cell.get("echo", True))
        stop()
        end_magics()
        save_figures()
        flush()
        channel.send({"done": True, "exitCode": code})


serve()

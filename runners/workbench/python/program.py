"""A program that is written as cells of a notebook are runs as these do: its last value is shown, `%magic`, `!command` and
`await` at the top work (magics.py, show.py).

What has been parsed for that is given to Python as byte code in the script's place, with all lines and columns as they were
written, and the script is back before its first line runs. It is executed before Python opens the script, and leaves nothing
in sys.modules.
"""

import os
import sys

EXTERNAL = sys.modules["_frozen_importlib_external"]
MODULES = "/usr/lib/python3/dist-packages"
MARSHAL = sys.modules["marshal"]
BYTES_MAX = 256 << 10  # a tree takes a hundred times as much memory
PART = 8192
BOM = b"\xef\xbb\xbf"
ONLY_TREE = 0x400  # ast's PyCF_ONLY_AST and PyCF_ALLOW_TOP_LEVEL_AWAIT, without an import of it
MAY_AWAIT = 0x2000
AWAITS = 0x80  # inspect's CO_COROUTINE
END = b"__import__('_sandbox_magics').end()"  # is behind what is shown
# Calls whose value is not shown.
SILENT = ("print", "open"), ("write", "writelines", "write_text", "write_bytes", "register")  # functions, methods
# What forks, of which Python warns where there are threads.
FORKS = (b"fork", b"multiprocessing", b"concurrent.futures", b"pty")
FLUSH_S = 0.1
MARKS = (b"!", b"%", b"?")
STICKY = 0o1000  # of a program that runs (runners/common/script.c)
SCRIPT_MODE = 0o1600


class Said(list):
    """In the place of standard error, while it is not clear whether Python will say the same again."""

    write = list.append


def quietly(work, *arguments):
    """What it returns, without warnings; these are in the second."""
    real, sys.stderr = sys.stderr, Said()
    try:
        return work(*arguments), sys.stderr
    finally:
        sys.stderr = real


def bring_in(name):
    """A module of ours, by the shortest way."""
    if name not in sys.modules:
        sys.modules["_frozen_importlib"]._load(EXTERNAL.spec_from_file_location(name, f"{MODULES}/{name}.py"))
    return sys.modules[name]


def has_marks(source):
    """Whether a line may be a magic, a command or a question."""
    if not (b"%" in source or b"!" in source or b"?" in source):
        return False
    if b"= !" in source or b"=!" in source or b"= %" in source or b"=%" in source:
        return True
    return any(line[:1] in MARKS or line[-1:] == b"?" for line in map(bytes.strip, source.splitlines()) if line)


def is_plain(source):
    """Whether nothing can be different in a notebook: the usual program, which is not parsed twice. Written for speed."""
    last = source[source.rstrip().rfind(b"\n") + 1:].rstrip()
    return (last[:6] == b"print(" and last[-1:] == b")" and source[:1] not in b" \t\r\n"
            and not (b"await" in source or b"async" in source or b"display" in source or b"get_ipython" in source or b"install" in source)
            and not has_marks(source))


def is_silent(value):
    called = value.func if type(value).__name__ == "Call" else None
    return getattr(called, "id", "") in SILENT[0] or getattr(called, "attr", "") in SILENT[1]


def show_last(tree, source):
    """Makes the tree show its last value, unless a semicolon is behind it."""
    last = tree.body[-1] if tree.body else None
    if type(last).__name__ != "Expr" or is_silent(last.value):
        return
    line = source.removeprefix(BOM).splitlines()[last.end_lineno - 1]
    if line[last.end_col_offset:].lstrip()[:1] == b";":
        return
    [shown] = compile("__loader__.show(0)", "", "exec", ONLY_TREE, True).body
    for node in (shown, shown.value, shown.value.func, shown.value.func.value):
        node.lineno, node.col_offset = last.value.lineno, last.value.col_offset
        node.end_lineno, node.end_col_offset = last.value.end_lineno, last.value.end_col_offset
    shown.value.args[0] = last.value
    if len(tree.body) == 1 and type(getattr(last.value, "value", None)) is str:
        tree.body.append(shown)  # a text alone is the program's description, too
    else:
        tree.body[-1] = shown


def compile_cell(source, name):
    tree = compile(source, name, "exec", ONLY_TREE, True)
    behind = tree.body.pop() if source.endswith(END) else None
    show_last(tree, source)
    if behind:
        tree.body.append(behind)
    return compile(tree, name, "exec", MAY_AWAIT, True)


def read(path):
    """With few steps: each program pays for them."""
    fd = os.open(path, os.O_RDONLY)
    source = part = os.read(fd, PART)
    while len(part) == PART and len(source) <= BYTES_MAX:
        source += (part := os.read(fd, PART))
    os.close(fd)
    return source


def translate(source, path):
    """A source that Python does not take. The program is what the magics make of it, if that is one; else Python says what is
    wrong, at the line that is."""
    _sandbox_magics = bring_in("_sandbox_magics")
    text, written = _sandbox_magics.translate(source)
    if text is None:
        return None, []
    try:
        code, said = quietly(compile_cell, text, path)
    except SyntaxError as problem:
        if _sandbox_magics.is_untouched(source, text, problem.lineno):
            replace(path, text, source)
        return None, []
    replace(path, text, source)
    _sandbox_magics.remember(path, written)
    return code, said


def write(path, content, flags=os.O_TRUNC):
    fd = os.open(path, os.O_WRONLY | flags, SCRIPT_MODE)
    try:
        while content:
            content = content[os.write(fd, content):]
    finally:
        os.close(fd)


def replace(path, content, before):
    """In the same file; there may be no room for what is longer."""
    try:
        write(path, content)
    except OSError:
        write(path, before)
        raise


def show(value):
    if value is not None:
        bring_in("_sandbox_show").show_last(value)


def show_in_session(value):
    """In the place of sys.displayhook."""
    if value is not None:
        sys.modules["builtins"]._ = value
        show(value)


def wait(coroutine, path):
    """The whole program, one that awaits at its top."""
    _sandbox_magics = bring_in("_sandbox_magics")
    _sandbox_magics.run_coroutine(eval(coroutine, sys.modules["__main__"].__dict__), path)


def give(path, code):
    """Python will find this code under the script's name."""
    aside, other, plain = path + "~", path + "c", EXTERNAL.SourcelessFileLoader
    coroutine = code if code.co_flags & AWAITS else None
    if coroutine:
        code = compile("__loader__.wait()", path, "exec", 0, True)

    def loader(name, place):
        """Is called when the file is open."""
        EXTERNAL.SourcelessFileLoader = plain
        os.rename(aside, path)
        loader = EXTERNAL.SourceFileLoader(name, place)
        loader.show = show
        if coroutine:
            loader.wait = lambda: wait(coroutine, path)
        return loader

    for left in aside, other:
        if os.path.lexists(left):
            os.unlink(left)
    # The name is never free: another container would take it.
    os.link(path, aside)
    write(other, EXTERNAL.MAGIC_NUMBER + bytes(12) + MARSHAL.dumps(code), os.O_CREAT | os.O_EXCL)
    os.rename(other, path)
    EXTERNAL.SourcelessFileLoader = loader


def lend(source=b"display get_ipython"):
    """The names that every cell has, to the programs that may mean them; to a session."""
    import builtins

    if b"display" in source:
        builtins.display = display
    if b"get_ipython" in source:
        builtins.get_ipython = get_ipython


def display(*values, **options):
    return bring_in("_sandbox_show").display(*values, **options)


def get_ipython():
    return bring_in("_sandbox_magics").Shell()


def is_program(name):
    """Whether a file of /data is a program that runs (runners/common/script.c)."""
    try:
        return name[:7] in (".script", b".script") and os.lstat("/data/" + os.fsdecode(name)).st_mode & STICKY != 0
    except OSError:
        return False


def hide_programs():
    """The program is not among the files that it lists."""
    real_listdir, real_scandir = os.listdir, os.scandir

    def listdir(path=None):
        return [name for name in real_listdir(path) if not is_program(name)]

    class scandir:
        def __init__(self, path=None):
            self.entries = real_scandir(path)
            self.close = self.entries.close

        def __iter__(self):
            return self

        def __next__(self):
            while is_program((entry := next(self.entries)).name):
                pass
            return entry

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.close()

    for own in listdir, scandir:
        own.__module__, own.__qualname__, own.__doc__ = "os", own.__name__, getattr(os, own.__name__).__doc__
        setattr(os, own.__name__, own)
        os.supports_fd.add(own)


def prints_parts(source):
    """Whether it prints what is no whole line, and makes no process that would hear of the thread."""
    return (b"end=" in source or b"end =" in source or b".write(" in source) and not any(sign in source for sign in FORKS)


def flush_often():
    """What is no whole line is seen while the program goes on, and not lost when it is killed. The thread is in no list; what is
    returned ends it."""
    import _signal
    import _thread

    streams, running = (sys.stdout, sys.stderr), _thread.allocate_lock()
    running.acquire()

    def work():
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            while not running.acquire(timeout=FLUSH_S):
                for stream in streams:
                    stream.flush()
        except Exception:
            pass

    _thread.start_new_thread(work, ())
    return running.release


class Installed:
    """Finds what the program itself has installed into the conversation."""

    def __init__(self, add_packages):
        self.add_packages = add_packages

    def find_spec(self, name, path=None, target=None):
        if path is not None or not self.add_packages():
            return None
        sys.path_importer_cache.clear()
        return EXTERNAL.PathFinder.find_spec(name, path, target)


def prepare(path, add_packages):
    source = read(path)
    if prints_parts(source):
        flush_often()
    if len(source) > BYTES_MAX or is_plain(source):
        return
    try:
        code, said = quietly(compile_cell, source, path)
    except SyntaxError:
        code, said = translate(source, path)
    if code is None:
        return
    for text in said:
        sys.stderr.write(text)
    lend(source)
    if b"install" in source:
        sys.meta_path.append(Installed(add_packages))
    give(path, code)


def ready(path, add_packages):
    """Whatever goes wrong here, Python does its own work."""
    hide_programs()
    try:
        prepare(path, add_packages)
    except Exception:
        pass

"""Programs to compare: one file each, with a header of comments that says how it is run and what may differ.

    # args: one "two words"         arguments, in shell's words
    # stdin: a line\\n                its standard input, with Python's escapes
    # env: NAME=value               a variable; any number
    # file: pkg/helper.py           a file in /data; the lines with a bar below are its text
    #| print("imported")
    # ways: all                     every way to begin (ways.py); without it those of DEFAULT_WAYS; with preloaded goes demanded
    # new: started preloaded        the ways in which the warm interpreter must not be used; in all others it must
    # either: preloaded             the ways in which it does not matter
    # differs: pid \\d+              what may differ in output: every match counts as the same
    # optional: debug.*\\n          what may be in output or not: every match is left out
    # fresh: token (\\w+)            what must differ: group 1 of the first match is another one in every run
    # unlisted: .*\\.sock            names of files in /data that do not count

In TypeScript the comments start with //. A first line that starts with #! is passed over.
"""
import dataclasses
import pathlib
import re
import shlex

HERE = pathlib.Path(__file__).resolve().parent
LANGUAGES = {"python": (".py", "#"), "typescript": (".ts", "//"), "bash": (".sh", "#")}
ALL_WAYS = ("cold", "started", "preloaded", "preloading", "demanded")
DEFAULT_WAYS = ("cold", "started")
# An interpreter that starts in a millisecond is not prestarted.
NEVER_WARM = ("bash",)
MANY = frozenset(("env", "file", "differs", "optional", "fresh", "unlisted"))
ONCE = frozenset(("args", "stdin", "ways", "new", "either"))


class BadHeader(Exception):
    pass


@dataclasses.dataclass
class Program:
    language: str
    name: str
    code: bytes
    args: list
    stdin: bytes
    env: list
    files: dict
    ways: tuple
    new: tuple
    either: tuple
    differs: list
    optional: list
    fresh: list
    unlisted: list

    def __str__(self):
        return f"{self.language}/{self.name}"


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def read_header(path, mark):
    """Key to values, and the files' texts."""
    entries = {key: [] for key in MANY | ONCE}
    files = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        if line.startswith(mark + "|") and entries["file"]:
            files[entries["file"][-1]] += line[len(mark) + 1:].removeprefix(" ") + "\n"
            continue
        if number == 1 and line.startswith("#!"):
            continue
        found = re.match(re.escape(mark) + r" (\w+): ?(.*)", line)
        if not found:
            return entries, files
        key, value = found.groups()
        if key not in entries or (key in ONCE and entries[key]):
            raise BadHeader(f"{path}:{number}: {key} is unknown, or there twice")
        entries[key].append(value)
        if key == "file":
            files[value] = ""
    return entries, files


def load(path):
    language = path.parent.name
    mark = LANGUAGES[language][1]
    entries, files = read_header(path, mark)

    def once(key, default=""):
        return entries[key][0] if entries[key] else default

    def words(key):
        found = tuple(once(key).split())
        return found + (("demanded",) if "preloaded" in found else ())

    return Program(
        language=language, name=path.stem, code=path.read_bytes(), args=shlex.split(once("args")),
        stdin=unescape(once("stdin")), env=[unescape(e) for e in entries["env"]],
        files={name: text.encode() for name, text in files.items()},
        ways=ALL_WAYS if once("ways") == "all" else words("ways") or DEFAULT_WAYS,
        new=ALL_WAYS if language in NEVER_WARM else words("new"), either=words("either"),
        differs=[re.compile(d.encode(), re.M) for d in entries["differs"]],
        optional=[re.compile(o.encode(), re.M) for o in entries["optional"]],
        fresh=[re.compile(f.encode(), re.M) for f in entries["fresh"]],
        unlisted=[re.compile(u) for u in entries["unlisted"]])


def load_all(words):
    """All programs whose language/name contains one of words (all of them without words)."""
    found = []
    for language, (suffix, _) in LANGUAGES.items():
        for path in sorted((HERE / language).glob("*" + suffix)):
            if not words or any(word in f"{language}/{path.stem}" for word in words):
                found.append(load(path))
    return found

"""Faults: what can be wrong in one line, by patterns over the line without comments and the insides of strings.

faults(path, text) -> [Fault]. An operator gets the line as read_c() and its like leave it, and yields (kind, from, to, instead).
"""
import collections
import io
import os
import re
import tokenize

Fault = collections.namedtuple("Fault", "path number kind before after")

TURNED = "comparison turned"
BOUND = "bound off by one"
ERROR = "error not returned"
CHECK = "check dropped"
SWAPPED = "arguments swapped"
LEFT_OUT = "close or free left out"
FLAG = "flag weakened"

HIDDEN = "\1"  # stands for each character of a comment or string
OPPOSITE = {"==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
BESIDE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
LEAVES = re.compile(r"\s+(return|goto|break|continue|raise|throw|die|exit|_exit)\b")
ENDS = {"free", "clear", "close", "decref", "cleanup", "release", "unlink", "unlinkat", "munmap", "fclose", "closedir", "kill", "unref", "wipe", "unlock"}


# ---- reading ----

def hide(pattern, text):
    """Each match of pattern without what is between its first and last character."""
    def hidden(match):
        found = match.group(0)
        quoted = found[0] in "\"'`" and len(found) > 1
        inside = re.sub(r"[^\n]", HIDDEN, found[1:-1] if quoted else found)
        return found[0] + inside + found[-1] if quoted else inside
    return pattern.sub(hidden, text)


C_HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
SCRIPT_HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`', re.S)
SHELL_HIDDEN = re.compile(r"\\.|<<-?\s*(['\"]?)(\w+)\1.*?\n\2\n|(?<![^\s;(])#[^\n]*|\"(?:[^\"\\]|\\.)*\"|\$?'[^']*'", re.S)
NGINX_HIDDEN = re.compile(r"#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"")


def read_c(text):
    """Without macros, too: a line of one is not compiled where it stands."""
    text = hide(C_HIDDEN, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda found: re.sub(r"[^\n]", HIDDEN, found.group(0)), text, flags=re.M)


def read_python(text):
    lines = [list(line) for line in text.split("\n")]
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                for row in range(token.start[0] - 1, token.end[0]):
                    start = token.start[1] if row == token.start[0] - 1 else 0
                    end = token.end[1] if row == token.end[0] - 1 else len(lines[row])
                    lines[row][start:end] = HIDDEN * (end - start)
    except (tokenize.TokenError, SyntaxError):
        return HIDDEN
    return "\n".join("".join(line) for line in lines)


# ---- operators; line: the line as it was read, after: the next one ----

def turned(line, _after):
    for found in re.finditer(r" (===|!==|==|!=|<=|>=|<|>) ", line):
        yield TURNED, *found.span(1), OPPOSITE[found.group(1)]


def bound(line, _after):
    for found in re.finditer(r" (<=|>=|<|>) ", line):
        yield BOUND, *found.span(1), BESIDE[found.group(1)]
    for found in re.finditer(r"(?<=[\w)\]]) [+-] 1\b(?![\w.])", line):
        yield BOUND, *found.span(), ""


def operand(line, _after):
    """The right side of && or ||, as far as it ends on this line."""
    for found in re.finditer(r" (&&|\|\|) ", line):
        depth = 0
        for at in range(found.end(), len(line)):
            char = line[at]
            depth += (char in "([") - (char in ")]")
            if depth < 0 or depth == 0 and (char in ";?:," or line.startswith((" &&", " ||"), at)):
                yield CHECK, found.start(), at, ""
                break


def check(line, after):
    """if (condition) in front of a line that leaves."""
    found = re.match(r"\s*(?:\} else )?if (\()", line)
    if found and LEAVES.match(after):
        rest = line[found.end():]
        end = len(line.rstrip()) - (2 if line.endswith(" {") else 0)
        if line[end - 1] == ")" and rest.count("(") + 1 == rest.count(")"):
            yield CHECK, found.end(), end - 1, lambda condition: f"0 && ({condition})"


def c_error(line, _after):
    for found in re.finditer(r"\breturn (-1);", line):
        yield ERROR, *found.span(1), "0"
    for found in re.finditer(r"\breturn (?=err_(?:set|errno|wrap)\()", line):
        yield ERROR, found.end(), found.end(), "0 * "
    for found in re.finditer(r"\breturn (false|true);", line):
        yield ERROR, *found.span(1), "true" if found.group(1) == "false" else "false"


def swapped(line, _after):
    """Arguments of a call that stand beside each other."""
    for found in re.finditer(r"(?<=[\s(!*])(?!if|for|while|switch|return|sizeof|defined)[A-Za-z_]\w*\(([^()]*)\)", line) if line[:1].isspace() else ():
        at = found.start(1)
        arguments = found.group(1).split(", ")
        for first, second in zip(arguments, arguments[1:]):
            if first != second and all(re.fullmatch(r"[&*!]?[\w.\[\]>-]+", one) for one in (first, second)):
                yield SWAPPED, at, at + len(first) + 2 + len(second), f"{second}, {first}"
            at += len(first) + 2


def c_left_out(line, _after):
    found = re.match(r"\s+((\w+)\(.*\);)$", line)
    if found and ENDS.intersection(found.group(2).split("_")):
        yield LEFT_OUT, *found.span(1), "(void)0;"
    found = re.match(r"\s+(AUTO_[A-Z_]+ )\w", line)
    if found:
        yield LEFT_OUT, *found.span(1), ""
    found = re.match(r"\s+json_(auto_)t \*", line)
    if found:
        yield LEFT_OUT, *found.span(1), ""


def c_flag(line, _after):
    flag = r"[A-Z][A-Z0-9]*_[A-Z0-9_]+"
    for pattern in (rf"\b{flag} \| (?={flag}\b)", rf"(?<=[A-Z0-9_]) \| {flag}\b(?! \|)"):
        for found in re.finditer(pattern, line):
            yield FLAG, *found.span(), ""
    yield from mode(line)
    for found in re.finditer(r" = (true|false)\b", line):
        yield FLAG, *found.span(1), "true" if found.group(1) == "false" else "false"


def mode(line):
    """What the owner of a file may do, all may."""
    for found in re.finditer(r"(?<![\w.])(0[0-7])([0-7]{2})(?![\w.])", line):
        owner = found.group(1)[1]
        if found.group(2) != owner * 2:
            yield FLAG, *found.span(2), owner * 2


def nginx(line, _after):
    found = re.match(r"\s*((?!\}|location|server|if\b|map\b|upstream)[a-z_]+\b.*;)$", line)
    if found:
        yield CHECK, *found.span(1), ""
    for found in re.finditer(r"\b(on|off);", line):
        yield FLAG, *found.span(1), "off" if found.group(1) == "on" else "on"
    for found in re.finditer(r"if \(\S+ (!?)(=|~\*?) ", line):
        yield TURNED, found.start(1), found.end(2), found.group(2) if found.group(1) else "!" + found.group(2)
    for found in re.finditer(r"\breturn (4\d\d|5\d\d)\b", line):
        yield ERROR, *found.span(1), "200"


SHELL_TURNED = {"==": "!=", "!=": "==", "-eq": "-ne", "-ne": "-eq", "-n": "-z", "-z": "-n"}
SHELL_BESIDE = {"-lt": "-le", "-le": "-lt", "-gt": "-ge", "-ge": "-gt"} | BESIDE


def shell(line, _after):
    if re.search(r"(\[\[|\(\() ?", line):
        for found in re.finditer(r" (==|!=|-eq|-ne|-n|-z) ", line):
            yield TURNED, *found.span(1), SHELL_TURNED[found.group(1)]
        for found in re.finditer(r"(?<=\[\[ )! ", line):
            yield TURNED, *found.span(), ""
    for found in re.finditer(r" (-lt|-le|-gt|-ge) ", line):
        yield BOUND, *found.span(1), SHELL_BESIDE[found.group(1)]
    for inside in re.finditer(r"\(\((.*?)\)\)", line):
        for found in re.finditer(r" (<=|>=|<|>) ", inside.group(0)):
            yield BOUND, inside.start() + found.start(1), inside.start() + found.end(1), SHELL_BESIDE[found.group(1)]
    for found in re.finditer(r"\b(?:return|exit) (1)\b", line):
        yield ERROR, *found.span(1), "0"
    for found in re.finditer(r"\|\| (?=(?:die|return|exit)\b)", line):
        yield ERROR, found.end(), found.end(), ": "
    for found in re.finditer(r"\bif (?=\[\[|\(\()", line):
        yield CHECK, found.end(), found.end(), "false && "
    found = re.match(r"\s+((?:rm|kill|wait|umount|chmod|chown)\b.*[^\\|&{])$", line)
    if found:
        yield LEFT_OUT, *found.span(1), ":"
    for found in re.finditer(r"^set -(e)u", line):
        yield FLAG, *found.span(1), ""
    yield from mode(line)


def python(line, after):
    for found in re.finditer(r" is (not )?None\b", line):
        yield TURNED, *found.span(), " is None" if found.group(1) else " is not None"
    found = re.match(r"\s*(?:el)?if (.*):$", line)
    if found and LEAVES.match(after):
        yield CHECK, *found.span(1), lambda condition: f"False and ({condition})"
    for found in re.finditer(r"\breturn (True|False)\b", line):
        yield ERROR, *found.span(1), "True" if found.group(1) == "False" else "False"
    found = re.match(r"\s+(raise\b.*)$", line)
    if found and found.group(1).count("(") == found.group(1).count(")"):
        yield ERROR, *found.span(1), "pass"
    found = re.match(r"\s+([\w.]*?(\w+)\(.*\))$", line)
    if found and found.group(2) in ENDS:
        yield LEFT_OUT, *found.span(1), "pass"


def script(line, _after):
    for found in re.finditer(r"\breturn (true|false)\b", line):
        yield ERROR, *found.span(1), "true" if found.group(1) == "false" else "false"
    found = re.match(r"\s+([\w.]*?(\w+)\(.*\);?)$", line)
    if found and found.group(2) in ENDS:
        yield LEFT_OUT, *found.span(1), ";"


LANGUAGES = {
    "c": (read_c, (turned, bound, operand, check, c_error, swapped, c_left_out, c_flag)),
    "nginx": (lambda text: hide(NGINX_HIDDEN, text), (nginx,)),
    "shell": (lambda text: hide(SHELL_HIDDEN, text), (shell,)),
    "python": (read_python, (turned, bound, swapped, python)),
    "script": (lambda text: hide(SCRIPT_HIDDEN, text), (turned, bound, operand, check, swapped, script)),
}
ENDINGS = {".c": "c", ".in": "nginx", ".sh": "shell", ".py": "python", ".mjs": "script"}


def language(path, text):
    """None: no faults are made in it."""
    ending = os.path.splitext(path)[1]
    if ending in ENDINGS:
        return ENDINGS[ending]
    first = text.partition("\n")[0]
    return None if ending or not first.startswith("#!") else "python" if "python" in first else "shell"


def faults(path, text):
    name = language(path, text)
    if not name:
        return []
    read, operators = LANGUAGES[name]
    lines, shown = text.split("\n"), read(text).split("\n")
    shown += [""] * (len(lines) + 1 - len(shown))
    found = []
    for number, line in enumerate(lines, 1):
        for operator in operators:
            for kind, start, end, instead in operator(shown[number - 1], shown[number]):
                new = instead(line[start:end]) if callable(instead) else instead
                found.append(Fault(path, number, kind, line, line[:start] + new + line[end:]))
    return [one for one in found if one.before != one.after]

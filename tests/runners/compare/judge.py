"""Are two outcomes of a program the same, but for what its header allows?"""
import difflib

SHOWN_LINES = 24
SAME = b"<...>"


def normalise(program, data):
    for pattern in program.optional:
        data = pattern.sub(b"", data)
    for pattern in program.differs + program.fresh:
        data = pattern.sub(SAME, data)
    return data


def listed(program, files):
    return {n: d for n, d in files.items() if not any(u.fullmatch(n) for u in program.unlisted)}


def text_of(program, outcome):
    """All of an outcome that counts, as lines."""
    lines = [f"ended: {outcome.exit}"]
    for name, data in (("stdout", outcome.out), ("stderr", outcome.err)):
        data = normalise(program, data)
        lines += [f"{name}: {line!r}" for line in data.decode("utf-8", "backslashreplace").splitlines(keepends=True)]
    return lines + [f"file {name!r}: {what}" for name, what in sorted(listed(program, outcome.files).items())]


def fresh_values(program, outcome):
    """What must be another value in every run; None where the program did not print it."""
    return [(found.group(1) if (found := pattern.search(outcome.out + outcome.err)) else None) for pattern in program.fresh]


def problems(program, way, bare, outcome, before):
    """Lines that say what is wrong; none when all is well. before: the outcomes of the program's other runs so far."""
    lines = list(difflib.unified_diff(text_of(program, bare), text_of(program, outcome), "bare", way, lineterm="", n=1))
    if len(lines) > SHOWN_LINES:
        lines = lines[:SHOWN_LINES] + [f"... and {len(lines) - SHOWN_LINES} lines more"]
    values = fresh_values(program, outcome)
    for at, value in enumerate(values):
        if value is None:
            lines.append(f"not printed: {program.fresh[at].pattern.decode()}")
        elif value in [fresh_values(program, other)[at] for other in before]:
            lines.append(f"not fresh: {value.decode(errors='replace')} was there before")
    plain = not (program.files or program.env)  # nothing that the loaded libraries could be refused for
    if way in ("started", "preloaded") and way not in program.either or way == "demanded" and plain:
        expected = "new" if way in program.new else "warm"
        if outcome.begun != expected:
            lines.append(f"began {outcome.begun or 'without a word'}, expected {expected}")
    return lines

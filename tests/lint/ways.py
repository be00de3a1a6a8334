#!/usr/bin/env python3
"""Each cell of tests/ways.md names tests that exist, by words that one test alone has, or says why there is none."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
TESTS = TOP / "tests"
PIECE = r'"(?:[^"\\]|\\.)*"'


def text(path):
    return path.read_text(encoding="utf-8")


def sentences(path):
    """Of the tests of a Python module; a name stands for the sentence that it has."""
    source = text(path)
    for pieces in re.findall(rf"^@test\(\s*((?:{PIECE}\s*)+|\w+)", source, re.M):
        if not pieces.startswith('"'):
            pieces = re.search(rf"^{pieces} = ({PIECE})$", source, re.M)[1]
        yield re.sub(r"\\(.)", r"\1", "".join(one[1:-1] for one in re.findall(PIECE, pieces)))


def functions(paths, pattern):
    for path in paths:
        yield from re.findall(pattern, text(path), re.M)


def groups():
    """Of the nginx suite: those that it runs."""
    for path in TESTS.glob("nginx/groups_*.py"):
        yield from re.findall(r"\w+", re.search(r"^GROUPS = \[([^]]*)\]", text(path), re.M)[1])


def tests_of(suite):
    """Their names or sentences; None: there is no such suite."""
    by_name = {"nginx": groups, "unit": lambda: functions(TESTS.glob("unit/*/test_*.c"), r"^static void (\w+)\(\s*void \*\*state\)")}
    modules = {"machine": TESTS / "machine/walk.py", "cluster": TESTS / "cluster/test_cluster.py"}
    if suite in by_name:
        return list(by_name[suite]())
    path = modules.get(suite, TESTS / f"e2e/test_{suite}.py")
    return list(sentences(path)) if path.exists() else None


def faults_of(cell):
    if cell.startswith("none: ") or cell.startswith("none ("):
        return
    for reference in cell.split("; "):
        suite, _, words = reference.partition(": ")
        found = tests_of(suite)
        if not words or found is None:
            yield f"'{reference}' is no SUITE: WORDS"
            continue
        exact = [name for name in found if name == words]
        n = len(exact or [name for name in found if words in name])
        if n != 1:
            yield f"{reference}: {'no test has' if n == 0 else f'{n} tests have'} these words"


def main():
    page = text(TESTS / "ways.md")
    rows = [(number, [cell.strip() for cell in line.strip("|").split("|")]) for number, line in enumerate(page.splitlines(), 1) if line.startswith("|")]
    first = next(i for i, (_, row) in enumerate(rows) if row[0] == "way")
    faults = [f"tests/ways.md:{number}: {fault}" for number, row in rows[first:] if row[0] not in ("way", "promise", "---") for cell in row[1:] for fault in faults_of(cell)]
    columns = len(rows[first][1])
    faults += [f"tests/ways.md:{number}: {len(row)} cells, not {columns} or 2" for number, row in rows[first:] if len(row) not in (columns, 2)]
    if faults:
        print("\n".join(faults))
        sys.exit("name a test that there is, by words that it alone has")


if __name__ == "__main__":
    main()

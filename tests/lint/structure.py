#!/usr/bin/python3
"""The structure of the C sources: fails when files form a circle, reports how much the code is split up.

usage: structure.py [--list] [FOLDER]     FOLDER: the checkout (default: $srcdir, then this one)

A node is a file; name.c and name.h are one. An arrow is an include, or the use of a function or object that another
file defines. --list names the parts that the report counts: functions with one use and at most five lines, and headers
that one file besides their own includes. They are places to look at, not errors.
"""

import collections
import os
import re
import sys

PRODUCT = ("common", "fcgi", "runners")
SMALL_LINES = 5  # of a function's body


def c_files(top):
    for folder in PRODUCT:
        for where, _, names in os.walk(os.path.join(top, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(where, name), top)


def without_comments(text):
    """The same lines without comments and without the insides of strings."""
    def blank(match):
        found = match.group(0)
        return '""' if found[0] == '"' else "0" if found[0] == "'" else "\n" * found.count("\n") or " "
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', blank, text, flags=re.S)


FUNCTION = re.compile(r"^(?!typedef|struct \w+ \{|#)([A-Za-z_][^;{}=#]*?\b(\w+)\((?:[^;{}#])*\)[^;{}#]*)\n\{\n(.*?)^\}", re.S | re.M)
OBJECT = re.compile(r"^(?!static|extern|typedef)(?:const )?(?:struct \w+|[a-z_0-9]+)[ *](?:const )?\*?(\w+)(?:\[[^]]*\])* =", re.M)
INCLUDE = re.compile(r'^#\s*include\s+"([^"]+)"', re.M)
WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*\b")  # not the name of a field


class Source:
    def __init__(self, top, path):
        self.path = path
        self.node = path[:-2]
        self.world = "runners" if path.startswith("runners/") else "server"  # programs that are linked apart
        with open(os.path.join(top, path), encoding="utf-8") as file:
            text = file.read()
        self.lines = text.count("\n")
        self.includes = INCLUDE.findall(text)
        self.text = without_comments(text)
        self.functions = []  # (name, lines of the body, is it static)
        for match in FUNCTION.finditer(self.text):
            self.functions.append((match.group(2), match.group(3).count("\n"), "static" in match.group(1).split("(")[0].split()))
        self.objects = OBJECT.findall(self.text) if path.endswith(".c") else []
        self.words = collections.Counter(WORD.findall(re.sub(r"^#.*$", "", self.text, flags=re.M)))


def definitions(sources):
    """(world, name) of what other files may use -> the node that defines it."""
    found = {}
    for source in sources:
        if source.path.endswith(".c"):
            names = [name for name, _, static in source.functions if not static and name != "main"] + source.objects
            for name in names:
                found[source.world, name] = source.node
    return found


def arrows(sources):
    """node -> {other node: why}."""
    nodes = {source.node for source in sources}
    defined = definitions(sources)
    found = collections.defaultdict(dict)
    for source in sources:
        own = {name for name, _, static in source.functions if static}
        for target in source.includes:
            near = os.path.normpath(os.path.join(os.path.dirname(source.path), target))
            node = next((path[:-2] for path in (target, near) if path.endswith(".h") and path[:-2] in nodes), None)
            if node and node != source.node:
                found[source.node].setdefault(node, "includes " + os.path.basename(target))
        if source.path.endswith(".c"):
            for word in source.words:
                node = defined.get((source.world, word))
                if node and node != source.node and word not in own:
                    found[source.node][node] = "uses " + word
    return found


def circles(found):
    """Tarjan's strongly connected components of more than one node."""
    index, low, stack, on_stack, result = {}, {}, [], set(), []
    for root in sorted(found):
        if root in index:
            continue
        work = [(root, iter(sorted(found.get(root, {}))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(found.get(other, {})))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = []
                    while not circle or circle[-1] != node:
                        circle.append(stack.pop())
                        on_stack.discard(circle[-1])
                    if len(circle) > 1:
                        result.append(sorted(circle))
    return result


def uses_of(sources):
    """(world, name) -> how often it stands anywhere, definitions and declarations aside; static ones per file."""
    everywhere = collections.Counter()
    for source in sources:
        for word, n in source.words.items():
            everywhere[source.world, word] += n
    return everywhere


def declarations(sources):
    found = collections.Counter()
    for source in sources:
        text = re.sub(r"^\{\n.*?^\}", "", source.text, flags=re.S | re.M)
        for match in re.finditer(r"^[A-Za-z_][^;{}=#()]*?\b(\w+)\([^;{}]*\)[^;{}()]*;", text, re.M):
            found[source.world, match.group(1)] += 1
    return found


def small_functions(sources):
    """Functions with one use and at most SMALL_LINES lines."""
    everywhere, declared = uses_of(sources), declarations(sources)
    for source in sources:
        for name, lines, static in source.functions:
            if lines > SMALL_LINES or name == "main":
                continue
            uses = source.words[name] - 1 if static else everywhere[source.world, name] - 1 - declared[source.world, name]
            if uses == 1:
                yield f"{source.path}: {name}, {lines} lines"


def lone_headers(sources):
    """Headers that one file besides their own includes."""
    users = collections.defaultdict(set)
    for source in sources:
        for target in source.includes:
            users[target].add(source.node)
    for source in sources:
        if source.path.endswith(".h"):
            others = users[source.path] | users[os.path.basename(source.path)] if source.world == "runners" else users[source.path]
            if len(others - {source.node}) == 1:
                yield source.path


def main():
    arguments = [word for word in sys.argv[1:] if word != "--list"]
    top = arguments[0] if arguments else os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "../..")
    sources = [Source(top, path) for path in c_files(top)]
    found = arrows(sources)
    rings = circles(found)
    for ring in rings:
        print(f"circle of {len(ring)} files:")
        for node in ring:
            for other in sorted(set(found[node]) & set(ring)):
                print(f"  {node} -> {other} ({found[node][other]})")
    small, lone = list(small_functions(sources)), list(lone_headers(sources))
    if "--list" in sys.argv:
        print("\n".join(small + lone))
    functions = [lines for source in sources for _, lines, _ in source.functions]
    print(f"{len(sources)} files ({sum(s.path.endswith('.c') for s in sources)} .c), {sum(s.lines for s in sources)} lines, "
          f"{len(functions)} functions, {len(small)} with one use and at most {SMALL_LINES} lines, "
          f"{len(lone)} headers with one includer, {len(rings)} circles")
    sys.exit(1 if rings else 0)


if __name__ == "__main__":
    main()

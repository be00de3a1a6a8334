"""The command blocks of the pages. Each one (a fence with the language sh) is executed by a test as it stands, in the order of its
page, or says what it needs that the tests do not have: above it stands <!-- walk: NAME --> or <!-- needs: WHAT -->.
Called as a program it prints what is wrong."""
import collections
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
# The test that executes the walked blocks of a page: it names them in the page's order.
WALKS = {
    "README.md": "tests/e2e/test_start.py", "common/README.md": "tests/e2e/test_start.py", "common/files.md": "tests/e2e/test_start.py",
    "common/sandboxes.md": "tests/e2e/test_start.py", "nginx/README.md": "tests/nginx/groups_walk.py", "nginx/cluster.md": "tests/nginx/groups_cluster.py",
    "fcgi/operations.md": "tests/nginx/groups_walk.py", "fcgi/oauth.md": "tests/nginx/groups_walk.py",
    "service/README.md": "tests/release/test_release.py",
}
MARK = re.compile(r"<!-- (walk|needs|answer): (.+) -->")

Block = collections.namedtuple("Block", "line language kind name text")


def blocks(text):
    """Every fenced block of a page; kind and name are those of the comment above it, or empty."""
    found, above, opened, inside = [], "", None, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"\s*```(.*)", line)
        if opened and fence:
            mark = MARK.fullmatch(opened[2])
            found.append(Block(opened[0], opened[1], *(mark.groups() if mark else ("", "")), "\n".join(inside) + "\n"))
            opened = None
        elif opened:
            inside.append(line)
        elif fence:
            opened, inside = (number, fence.group(1), above.strip()), []
        above = line
    return found


def _page(name):
    return (TOP / name).read_text(encoding="utf-8")


def page_blocks(page):
    return blocks(_page(page))


def walked(page, kind="walk"):
    """The commands of a page that are executed, by name, in its order; or its blocks of another kind."""
    return {block.name: block.text for block in page_blocks(page) if block.kind == kind}


def faults_of(page, text, test):
    """What is wrong with one page; test: the text of the one that executes its blocks, or None."""
    place, names = -1, []
    for block in blocks(text):
        if not block.language:
            yield f"{page}:{block.line}: the block has no language: sh for commands, ini for settings, text"
        if block.language == "sh" and block.kind not in ("walk", "needs"):
            yield f"{page}:{block.line}: commands that no test executes: <!-- walk: NAME --> or <!-- needs: WHAT --> stands above them"
        if block.kind != "walk":
            continue
        if block.name in names:
            yield f"{page}:{block.line}: two blocks are called {block.name}"
        names.append(block.name)
        place = test.find(f'"{block.name}"', place + 1) if test is not None else -1
        if place < 0:
            yield f"{page}:{block.line}: no test executes {block.name} in the page's order (WALKS in tests/lib/pages.py)"
            return


def faults():
    """What is wrong with all pages."""
    done = subprocess.run(["find", ".", "-name", "*.md", "-not", "-path", "*/node_modules/*", "-not", "-path", "./build*", "-not", "-path", "./var/*",
                           "-not", "-path", "./sandcgi-*", "-not", "-path", "*/prompts/*"], cwd=TOP, check=True, capture_output=True, text=True)
    for page in sorted(name.removeprefix("./") for name in done.stdout.split()):
        yield from faults_of(page, _page(page), _page(WALKS[page]) if page in WALKS else None)


if __name__ == "__main__":
    print(*faults(), sep="\n", end="")

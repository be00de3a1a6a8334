"""sessions: room, input and network; the places of other servers"""
import re

from first_tries import at, bash, no, python, tool, typescript


def py(code, **arguments):
    return python(code, session=True, **arguments)


def ts(code, **arguments):
    return typescript(code, session=True, **arguments)


def elsewhere(call, name):
    """The call, in a conversation of that name, which all rows share."""
    return call[0], call[1] | {"conversationId": name}


# More than there are places for, one after the other.
MANY = [elsewhere(py(f"x = {i}\nprint('x is', x)"), f"places-{i}") for i in range(6)]
RUNNER = {"conversationId": "places-runner"}

ROWS = (
    ("a sixth conversation with a session is served", MANY, "x is 5", "exit code 0"),
    ("of six sessions the newest keep their variables", [*MANY, elsewhere(py("print(x)"), "places-4")], re.compile(r"^4$", re.M), no("lost")),
    ("the oldest of six says that its variables are lost, and why",
     [*MANY, elsewhere(py("print('x' in globals())"), "places-0")], "False", "variables of the calls before are lost", "another session needed its place"),
    ("the files of the oldest are still there",
     [elsewhere(py("open('kept.txt', 'w').write('kept')"), "places-0"), *MANY[1:], elsewhere(py("print(open('kept.txt').read())"), "places-0")], "kept"),
    ("a session that lost its variables says so once", [*MANY, MANY[0], elsewhere(py("print(x)"), "places-0")], re.compile(r"^0$", re.M), no("lost")),
    ("six sessions in two languages by turns", [elsewhere(ts(f"const y = {i}; console.log('y is', y)"), f"places-ts-{i}") for i in range(6)], "y is 5"),
    ("a session that is used again and again outlives five others",
     [py("mine = 'mine'"), *(call for one in MANY[:5] for call in (one, py("print(mine)")))], "mine", no("lost")),
    ("standard input in a session", py("name = input()\nprint('hello', name)", stdin="Ada\n"), "hello Ada"),
    ("all of standard input in a session", py("import sys\nprint(sum(int(line) for line in sys.stdin))", stdin="1\n2\n3\n"), re.compile(r"^6$", re.M)),
    ("standard input of the next cell is its own", [py("a = input()", stdin="one\n"), py("print(a, input())", stdin="two\n")], "one two"),
    ("without standard input it is at its end, not that of the cell before", [py("pass", stdin="old\n"), py("import sys\nprint(repr(sys.stdin.read()))")], "''"),
    ("a child of a session reads its standard input", py("import subprocess\nsubprocess.run(['sort'])", stdin="b\na\n"), "a\nb"),
    ("standard input in a session of TypeScript", ts("console.log((await Bun.stdin.text()).toUpperCase())", stdin="grüße\n"), "GRÜSSE"),
    ("by lines, the next cell's its own",
     [ts("for await (const line of console) console.log('1', line)", stdin="x\n"), ts("for await (const line of console) console.log('2', line)", stdin="y\nz\n")],
     "2 y\n2 z"),
    ("Bun.stdin of the next cell is its own",
     [ts("await Bun.stdin.text()", stdin="old"), ts("console.log('now', await Bun.stdin.text())", stdin="new")], "now new"),
    ("prompt() reads a line", ts("console.log('hello', prompt('name?'))", stdin="Ada\n"), "hello Ada"),
    ("as a file, as Node's programs read it", [ts("let n = 1"), ts("console.log(require('fs').readFileSync(0, 'utf8').trim(), n)", stdin="text\n")], "text 1"),
    ("process.stdin as a stream", ts("for await (const part of process.stdin) console.log(String(part).trim())", stdin="streamed\n"), "streamed"),
    ("arguments in a session", py("import sys\nprint(sys.argv[1:])", args=["--n", "3"]), "['--n', '3']"),
    ("arguments with argparse", py("import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\nprint(p.parse_args().n + 1)",
                                   args=["--n", "41"]), "42"),
    ("arguments are those of their cell", [py("pass", args=["old"]), py("import sys\nprint(sys.argv[1:])")], "[]"),
    ("arguments in TypeScript", [ts("let k = 2"), ts("console.log(k, process.argv.slice(2).join('+'))", args=["a", "b"])], "2 a+b"),
    ("environment in a session", py("import os\nprint(os.environ['REGION'])", environment={"REGION": "eu=1"}), "eu=1"),
    ("environment stays with the session", [py("pass", environment={"REGION": "eu"}), py("import os\nprint(os.environ['REGION'])")], "eu"),
    ("and reaches what the session starts", [py("pass", environment={"REGION": "eu"}), py("import os\nos.system('echo got $REGION')")], "got eu"),
    ("environment in TypeScript, later too", [ts("1", environment={"PORT": "8080"}), ts("console.log(process.env.PORT, Bun.env.PORT)")], "8080 8080"),
    ("a language that keeps no variables says which do", bash("x=1", session=True), "python and typescript"),
    ("the first server's tools", at("/mcp/runner", tool("run_code", language="python", code="print(6 * 7)", **RUNNER)), '"success": true', "42"),
    ("the first server's tools, with a slash", at("/mcp/runner/", tool("list_runners")), '"languages"'),
    ("the second server's tools", at("/mcp/session", tool("sandbox_run_python", code="print(6 * 7)")), "exit_code", "42"),
    ("the third server's tools", at("/mcp/container", tool("sandbox_initialize")), "container_id: "),
    ("the fourth server's tools", at("/mcp/interpreter", tool("create_run_close", code="print(6 * 7)")), "42"),
    ("our own with a slash", at("/mcp/", bash("echo hi", conversationId="places-slash")), "hi", "exit code 0"),
)

"""input in the forms that models and clients write"""
import base64
import re

from first_tries import bash, no, python, tool, typescript

DATA = base64.b64encode(bytes(range(60)) * 2).decode()
LINES = "\n".join(DATA[i:i + 76] for i in range(0, len(DATA), 76))
FULL = "exit code 0"


def lang(name, code, **more):
    return tool("run_code", language=name, code=code, **more)


def write(filename, text="a,b\n", **more):
    return tool("write_file", filename=filename, text=text, **more)


def upload(content, **more):
    return tool("upload_file", filename="b.bin", content=content, **more)


def bytes_of(name, content):
    return tool("upload_file", filename=name, content=base64.b64encode(content).decode())


def read(name, **more):
    return tool("read_file", filename=name, **more)


SIZE = python("import os; print(os.path.getsize('b.bin'))")
ROWS = (
    # languages
    ("language javascript", lang("javascript", "console.log(6 * 7)"), "42", FULL),
    ("language JS", lang("JS", "console.log([1, 2].map(n => n * 2).join())"), "2,4"),
    ("language node", lang("node", "console.log(require('path').basename('/a/b'))"), "b"),
    ("language ts, with a blank", lang(" ts ", "const n: number = 3; console.log(n)"), "3"),
    ("language py", lang("py", "print('ok', 1 + 1)"), "ok 2"),
    ("language Python3", lang("Python3", "print(type(1).__name__)"), "int"),
    ("language python 3.12", lang("python 3.12", "print('yes')"), "yes"),
    ("language sh", lang("sh", "echo $((2 + 3))"), "5"),
    ("language Shell", lang("Shell", "printf '%s\\n' hi"), "hi"),
    ("language cobol is refused with the list", lang("cobol", "x"), "must be one of", "python"),
    ("list_runners of one language", tool("list_runners", language="js"), "typescript", no("pandas")),
    # numbers and booleans
    ("timeoutMs as text", python("print(1)", timeoutMs="20000"), FULL),
    ("timeoutMs as text with a fraction", typescript("console.log(1)", timeoutMs="20000.0"), FULL),
    ("timeoutMs with a unit", bash("echo a", timeoutMs="30 s"), FULL),
    ("timeoutMs in seconds", bash("echo a", timeoutMs=20), FULL, "timeoutMs 20 was taken as 20 s"),
    ("timeout in seconds", python("print(1)", timeout=45), FULL, "45 s"),
    ("timeout_seconds", typescript("console.log(1)", timeout_seconds=90), FULL, no("passed over")),
    ("timeout_seconds as text", bash("echo a", timeout_seconds="90"), FULL, no("passed over")),
    ("timeoutMs above the limit", python("print(1)", timeoutMs=10 ** 9), FULL, "is above the limit"),
    ("timeoutMs 500 has two meanings", python("print(1)", timeoutMs=500), "must be from 1000", no(FULL)),
    ("network \"false\"", python("print(1)", network="false"), FULL),
    ("network 0", bash("echo 1", network=0), FULL),
    ("session \"False\"", python("print(1)", session="False"), FULL),
    ("background \"no\"", typescript("console.log(1)", background="no"), FULL),
    ("network maybe is refused", bash("echo 1", network="maybe"), "true or false", no(FULL)),
    # lists and objects
    ("args as JSON text", python("import sys; print(sys.argv[1:])", args='["a", "b c"]'), "['a', 'b c']"),
    ("args as one text", bash('echo "$1/$#"', args="a b"), "a b/1"),
    ("args as numbers", typescript("console.log(process.argv.slice(2).join('+'))", args=[1, 2.5]), "1+2.5"),
    ("environment as JSON text", bash("echo $PORT", environment='{"PORT": "80"}'), "80"),
    ("environment with numbers and booleans", python("import os; print(os.environ['PORT'], os.environ['DEBUG'])",
                                                     environment={"PORT": 8080, "DEBUG": True}), "8080 true"),
    ("env", typescript("console.log(process.env.MODE)", env={"MODE": "x"}), "x"),
    ("stdin as a number", python("print(int(input()) + 1)", stdin=41), "42"),
    # left out
    ("conversationId \"\" begins a conversation", python("print(1)", conversationId=""), FULL, re.compile(r"conversationId: c\d{20}")),
    ("conversationId null", bash("echo 1", conversationId=None), FULL),
    ("timeoutMs \"\", stdin \"\", detail \"\"", typescript("console.log(1)", timeoutMs="", stdin="", detail=""), FULL),
    ("folder \"\"", [write("a.csv"), tool("list_files", folder="", glob="")], "a.csv"),
    # names
    ("conversation_id", [write("x.txt"), tool("list_files", conversation_id="f30-own", conversationId=None)], "no files"),
    ("script", tool("run_code", language="python", script="print(3)"), "3", FULL),
    ("source", tool("run_code", language="ts", source="console.log(4)"), "4"),
    ("command for bash", tool("run_code", language="bash", command="echo five"), "five"),
    ("path and content", [tool("write_file", path="p.txt", content="hello"), bash("cat p.txt")], "hello"),
    ("file_path, contents", [tool("write_file", file_path="p.txt", contents="hello"), read("p.txt")], "hello"),
    ("read_file by path", [write("a.csv"), tool("read_file", path="/mnt/data/a.csv")], "a,b"),
    ("content as JSON", [tool("write_file", filename="c.json", content={"a": [1]}), python("import json; print(json.load(open('c.json')))")],
     "{'a': [1]}"),
    ("content as JSON with a price", [tool("write_file", filename="c.json", content={"price": 19.99}), read("c.json")], '"price": 19.99\n'),
    ("what n8n adds", python("print(1)", toolCallId="t", sessionId="s", action="a", chatInput="c"), FULL, "passed over"),
    ("description", bash("echo 1", description="Says one"), FULL, "unknown argument 'description'"),
    ("cod", tool("run_code", language="python", cod="print(1)"), "did you mean 'code'", no(FULL)),
    ("netwrok", bash("echo 1", netwrok=True), FULL, "did you mean 'network'"),
    # text of programs
    ("a fence", python("```python\nprint('in')\n```"), "in", FULL),
    ("a fence without a language, with blank lines", typescript("\n\n```\nconsole.log('in')\n```\n\n"), "in", FULL),
    ("a fence of tildes", bash("~~~sh\necho in\n~~~"), "in", FULL, no("not found")),
    ("a fence whose end is lost", python("```py\nprint('in')"), "in", FULL),
    ("a fence inside stays", bash("cat <<'E'\n```\nx\n```\nE"), "```\nx\n```"),
    ("CR LF in bash", bash("if true\r\nthen\r\n  echo yes\r\nfi\r\n"), re.compile("^yes\n"), FULL),
    ("CR LF in a value", bash("a=1\r\necho \"[$a]\"\r\n"), "[1]"),
    ("CR LF in Python stays in its texts", python("print(len('''a\r\nb'''))\r\n"), re.compile("^3\n")),
    ("a byte order mark", bash("\ufeffecho mark"), "mark", FULL),
    ("a byte order mark in a session", python("\ufeffprint('mark')", session=True), "mark", FULL),
    ("a byte order mark in TypeScript", typescript("\ufeffconsole.log('mark')"), "mark", FULL),
    # base64
    ("base64 in lines", [upload(LINES), SIZE], "120"),
    ("base64 with a head", [upload("data:application/octet-stream;base64," + DATA), SIZE], "120"),
    ("base64 of URLs without padding", [upload("_-8"), python("print(open('b.bin', 'rb').read())")], r"b'\xff\xef'"),
    ("what is no base64 is refused", upload("hello, world"), "not base64"),
    # paths
    ("sandbox:/mnt/data/", [write("sandbox:/mnt/data/a.csv"), bash("ls")], "a.csv"),
    ("/mnt/data/", [write("/mnt/data/d/a.csv"), bash("ls d")], "a.csv"),
    ("~/", [write("~/a.csv"), python("import os; print(os.listdir('/data'))")], "a.csv"),
    ("/home/user/", [write("a.csv"), read("/home/user/a.csv")], "a,b"),
    ("file:///data/", [write("a.csv"), read("file:///data/a.csv")], "a,b"),
    ("folder /", [write("d/a.csv"), tool("list_files", folder="/")], "d/"),
    ("folder /data/d/", [write("d/a.csv"), tool("list_files", folder="/data/d/")], "a.csv"),
    ("glob /data/*.csv", [write("a.csv"), tool("list_files", glob="/data/*.csv")], "a.csv"),
    ("/etc/passwd is refused", read("/etc/passwd"), "below /data"),
    ("a folder that is not there", [write("reports/a.csv"), tool("list_files", folder="Report")], "did you mean 'reports'"),
    # encodings
    ("a text in Windows-1252", [bytes_of("k.csv", "Größe;Straße\n".encode("cp1252")), read("k.csv")], "Größe;Straße", "from Windows-1252"),
    ("a text in UTF-16", [bytes_of("u.txt", "Größe".encode("utf-16")), read("u.txt")], "Größe", "from UTF-16LE"),
    ("a text in Shift_JIS", [bytes_of("j.txt", "売上の一覧です".encode("cp932")), read("j.txt")], "売上の一覧です"),
    ("a text in GBK", [bytes_of("g.txt", "销售数据列表".encode("gbk")), read("g.txt")], "销售数据列表"),
    ("a PDF of letters", [python("open('a.pdf', 'wb').write(b'%PDF-1.4\\n%\\x93\\x8c\\x8b\\x9e ReportLab\\n')"), read("a.pdf")],
     "not text: ", "application/pdf"),
    ("a file that is no text", [python("import sqlite3; sqlite3.connect('a.db').execute('create table t (x)').connection.close()"),
                               read("a.db")], "not text: ", "vnd.sqlite3: https://"),
)

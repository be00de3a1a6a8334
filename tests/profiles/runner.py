#!/usr/bin/env python3
"""A user of the code runner with upload_file, run_code and list_runners, which speaks 2024-11-05."""
import base64
import json
import urllib.request

import client

NAMES = ["upload_file", "run_code", "list_runners"]

# The examples of its web page that need no network.
EXAMPLES = (
    ("python", "print('Hello from Python!')\nimport sys\nprint(sys.version.split('.')[0])", "Hello from Python!\n3\n"),
    ("python", "import pandas as pd, numpy as np\nframe = pd.DataFrame({'x': [1, 2, 3]})\nprint(frame.x.mean(), np.sqrt(16))", "2.0 4.0\n"),
    ("python", "import os\nprint(os.environ['API_KEY'], os.environ['DEBUG'])", "secret-key true\n"),
    ("typescript", "const greet = (name: string): string => `Hello, ${name}!`;\nconsole.log(greet('TypeScript'));", "Hello, TypeScript!\n"),
    ("typescript", "const fib = (n: number): number => n < 2 ? n : fib(n - 1) + fib(n - 2);\nconsole.log(fib(10));", "55\n"),
)


def payload(c, tool, **arguments):
    text = c.text(tool, **arguments)
    c.equal(json.dumps(json.loads(text), indent=2, ensure_ascii=False), text)
    return json.loads(text)


def errors(c):
    def error(method, params):
        answer = c.request(method, params)["error"]
        return answer["code"], answer["message"]
    c.equal(error("tools/call", {"name": "nothing", "arguments": {}}), (-32601, "Tool not found: nothing"))
    c.equal(error("no/such", {}), (-32601, "Method not found: no/such"))
    c.equal(error("tools/call", {"name": "run_code", "arguments": {"conversationId": "a"}}), (-32602, "language is required"))
    c.equal(error("tools/call", {"name": "run_code", "arguments": {"conversationId": "a", "language": "", "code": "x"}}),
            (-32602, "language is required"))
    c.equal(error("tools/call", {"name": "run_code", "arguments": {"conversationId": "a", "language": "cobol"}}), (-32602, "code is required"))
    c.equal(error("tools/call", {"name": "upload_file", "arguments": {"filename": "a", "content": "aGk="}}),
            (-32602, "conversationId is required"))
    if c.over_http:
        status, text = c.transport.raw(b"{nonsense")
        answer = json.loads(text)
        c.equal((status, answer["error"]["code"], answer["id"]), (200, -32700, None))
        c.equal(c.transport.raw(b"{}", token="wrong")[0], 401)


def files(c):
    content = base64.b64encode(b"name,value\na,1\nb,2\n").decode()
    told = payload(c, "upload_file", conversationId="files", filename="data.csv", content=content)
    c.equal((told["success"], told["message"]), (True, "File 'data.csv' uploaded successfully (19 bytes)"))
    c.equal(told["file"]["name"], "data.csv")
    code = "import os\nrows = open('data.csv').read().split()\nopen('out.txt', 'w').write(str(len(rows)))\nprint(os.environ['FILE_BASE_URL'])"
    told = payload(c, "run_code", conversationId="files", language="python", code=code)
    c.equal([file["name"] for file in told["files"]], ["out.txt"])
    gone = payload(c, "run_code", conversationId="files", language="python", code="import os\nos.remove('data.csv')")
    c.equal(gone["files"], [])
    url = told["stdout"].strip() + "/out.txt"
    c.equal(told["files"][0]["url"], url)
    if c.over_http:
        with urllib.request.urlopen(url, timeout=30, context=c.transport.context) as answer:
            c.equal(answer.read(), b"3")


def script(c):
    c.initialize("2024-11-05")
    c.equal([tool["name"] for tool in c.tools()], NAMES)
    languages = payload(c, "list_runners")["languages"]
    c.check({"python", "typescript"} <= {one["language"] for one in languages}, languages)
    c.check(all(one["image"] for one in languages), languages)
    for language, code, stdout in EXAMPLES:
        told = payload(c, "run_code", conversationId="web-test", language=language, code=code, network=False,
                       environment={"API_KEY": "secret-key", "DEBUG": "true"})
        c.equal((told["success"], told["stdout"], told["output"], told["exitCode"]), (True, stdout, stdout, 0))
    failed = payload(c, "run_code", conversationId="web-test", language="python", code="import sys; sys.exit('no')")
    c.equal((failed["success"], failed["exitCode"]), (False, 1))
    c.contains(failed["stderr"], "no")
    unknown = payload(c, "run_code", conversationId="web-test", language="cobol", code="x")
    c.equal((unknown["success"], unknown["stdout"], unknown["stderr"]), (False, "", "Unsupported language: cobol"))
    old = json.loads(c.text("sandbox.run_code", conversationId="web-test", language="python", code="print(1)"))
    c.equal(old["output"], "1\n")
    files(c)
    errors(c)


client.main(script)

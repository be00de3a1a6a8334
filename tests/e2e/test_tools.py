"""run_code and list_runners: every field of the result tells what happened."""
import base64
import json
import re
import secrets
import threading
import time

import network
import sites
from harness import PATIENCE, check, contains, equal, in_time, test, wait_until
from mcp import ToolError

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@test("a program that works: every field of the result", core=True)
def _():
    client = sites.client()
    whole = client.run_whole("import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('f.txt', 'w').write('12345')")
    equal(whole.get("isError", False), False)
    result = whole["structuredContent"]
    check(re.fullmatch(r"exit code 0, \d\.\d s\nf\.txt: " + re.escape(result["files"][0]["url"]), whole["content"][0]["text"]),
          f"the text: {whole['content'][0]['text']!r}")
    equal({k: result[k] for k in ("success", "status", "exitCode", "signal", "stdout", "stderr")},
          {"success": True, "status": "ok", "exitCode": 0, "signal": None, "stdout": "out\n", "stderr": "err\n"})
    equal(sorted(result["output"].split("\n")), ["", "err", "out"])
    equal(result["truncation"]["stdout"], {"truncated": False, "kept": 4, "total": 4})
    equal(result["truncation"]["output"], {"truncated": False, "kept": 8, "total": 8})
    check(0 < result["durationMs"] < 20000, "durationMs")
    check(0 < result["cpuMs"] < 20000, "cpuMs")
    check(1 << 20 < result["peakMemoryBytes"] <= 256 << 20, f"peakMemoryBytes {result['peakMemoryBytes']}")
    equal(len(result["files"]), 1)
    file = result["files"][0]
    equal((file["name"], file["size"], file["change"]), ("f.txt", 5, "created"))
    contains(file["mimeType"], "text/plain")
    equal(client.download(file["url"]).body, b"12345")
    links = [block for block in whole["content"] if block["type"] == "resource_link"]
    equal([(link["uri"], link["name"]) for link in links], [(file["url"], "f.txt")])


@test("a program that fails is a successful call: exit code, both streams, files", core=True)
def _():
    client = sites.client()
    whole = client.run_whole("open('half', 'w').write('x')\nraise ValueError('on purpose')")
    equal(whole.get("isError", False), False)
    result = whole["structuredContent"]
    equal((result["success"], result["status"], result["exitCode"]), (False, "error", 1))
    contains(result["stderr"], "ValueError: on purpose")
    equal([f["name"] for f in result["files"]], ["half"])


@test("H-26: exit codes that look like signals or timeouts stay exit codes")
def _():
    client = sites.client()
    for code in (1, 124, 127, 137, 139, 143, 255):
        result = client.run(f"exit {code}", "bash")
        equal((result["status"], result["exitCode"], result["signal"]), ("error", code, None), str(code))


@test("a program that a signal ends: killed, the signal, no exit code", core=True)
def _():
    client = sites.client()
    for number in (9, 11, 15, 6):
        result = client.run(f"import os, resource\nos.kill(os.getpid(), {number})")
        equal((result["success"], result["status"], result["exitCode"], result["signal"]),
              (False, "killed", None, number))


@test("a program over its time: timeout, at the promised moment, with output and files so far (H-17)", core=True)
def _():
    client = sites.client()
    start = time.monotonic()
    result = client.run("import time\nprint('before', flush=True)\nopen('early', 'w').write('x')\ntime.sleep(60)", timeout=2)
    check(time.monotonic() - start > 1.9, "answered before its time")
    in_time(start, 6, "answered")
    equal((result["success"], result["status"], result["exitCode"]), (False, "timeout", None))
    equal(result["stdout"], "before\n")
    equal([f["name"] for f in result["files"]], ["early"])
    check(1900 <= result["durationMs"] <= 5000 * PATIENCE, f"durationMs {result['durationMs']}")


@test("a program over its memory: out_of_memory", core=True)
def _():
    client = sites.client()
    result = client.run("print('start', flush=True)\na = []\nwhile True: a.append(bytearray(1 << 20))")
    equal((result["success"], result["status"]), (False, "out_of_memory"))
    equal(result["stdout"], "start\n")
    check(result["peakMemoryBytes"] is None or result["peakMemoryBytes"] > 200 << 20, "peakMemoryBytes")
    equal(client.run("print('next')")["stdout"], "next\n")


LIMITS = {"SANDBOX_OUTPUT_MAX": "4m", "SANDBOX_OUTPUT_KEEP": "8k", "SANDBOX_FSIZE": "1024g"}


@test("a program that prints too much: output_limit, head and tail kept", core=True)
def _():
    site = sites.with_settings(**LIMITS)
    client = sites.new_conversation(site.client())
    result = client.run("echo first; yes", "bash", timeout=30)
    equal((result["success"], result["status"]), (False, "output_limit"))
    check(result["stdout"].startswith("first\ny\ny\n"), "the head is there")
    cut = result["truncation"]["stdout"]
    check(cut["truncated"] and cut["kept"] <= 8192 and cut["total"] >= 4 << 20, f"{cut}")


@test("long output keeps the first and the last half, with the counts of both streams")
def _():
    client = sites.client()
    result = client.run("import sys\nfor i in range(100000): print(f'{i:09}')\nprint('E' * 10, file=sys.stderr)")
    equal(result["status"], "ok")
    cut = result["truncation"]["stdout"]
    equal((cut["truncated"], cut["total"]), (True, 1000000))
    check(result["stdout"].startswith("000000000\n000000001\n"), "head")
    check(result["stdout"].endswith("000099999\n"), "tail")
    check(100_000 < cut["kept"] <= 131072, f"kept {cut['kept']}")
    equal(result["truncation"]["stderr"], {"truncated": False, "kept": 11, "total": 11})
    equal(result["truncation"]["output"]["total"], 1000011)


@test("every byte of a megabyte printed at once before the exit is counted (H-16)")
def _():
    client = sites.client()
    for _ in range(5):
        result = client.run("import os, sys\nsys.stdout.write('x' * 1048576)\nsys.stdout.flush()\nos._exit(3)")
        equal((result["exitCode"], result["truncation"]["stdout"]["total"]), (3, 1048576))


@test("output holds both streams in the order of arrival")
def _():
    result = sites.client().run("for i in 1 2 3; do echo o$i; sleep 0.15; echo e$i >&2; sleep 0.15; done", "bash")
    equal(result["output"], "o1\ne1\no2\ne2\no3\ne3\n")
    equal((result["stdout"], result["stderr"]), ("o1\no2\no3\n", "e1\ne2\ne3\n"))


@test("output that is no text: NUL and invalid UTF-8 arrive as valid JSON (H-70)")
def _():
    result = sites.client().run(r"printf 'a\0b\377\376c\n\303\244\033[31mred'", "bash")
    check(result["stdout"].startswith("a"), "begins as printed")
    contains(result["stdout"], "c\n\u00e4")
    contains(result["stdout"], "red")
    equal(result["truncation"]["stdout"]["total"], 17)


@test("output that imitates the frames of the entry program or the engine is output")
def _():
    code = ("import sys, struct\nfake = b'R' + struct.pack('>I', 15) + b'{\"exitCode\":99}'\n"
            "sys.stdout.buffer.write(fake + b'\\x01\\0\\0\\0\\0\\0\\0\\x05hello' + b'O\\0\\xff\\xff\\xff')\nsys.exit(3)")
    result = sites.client().run(code)
    equal((result["status"], result["exitCode"], result["truncation"]["stdout"]["total"]), ("error", 3, 38))
    contains(result["stdout"], '{"exitCode":99}')


@test("stdin, args and the environment reach the program as they are", core=True)
def _():
    client = sites.client()
    code = "import json, os, sys\nprint(json.dumps([sys.stdin.read(), sys.argv[1:], os.environ['X_1'], os.environ['EMPTY']]))"
    args = ["a b", "", "--flag", "'\"$x", "\u00fc\n"]
    result = client.run(code, stdin="line\n\u00e9\n", args=args, environment={"X_1": "v=1 \u00fc\n", "EMPTY": ""})
    equal(json.loads(result["stdout"]), ["line\n\u00e9\n", args, "v=1 \u00fc\n", ""])
    equal(client.run("cat; echo end $#", "bash")["stdout"], "end 0\n", "no stdin is an empty one")
    big = "0123456789" * 100000
    equal(client.run("import sys\nprint(len(sys.stdin.read()))", stdin=big)["stdout"], "1000000\n")
    equal(client.run("print('stdin not read')", stdin=big)["status"], "ok")


@test("program text of any kind: empty, unicode, no newline at the end, half a megabyte")
def _():
    client = sites.client()
    equal((client.run("")["status"], client.run("", "bash")["exitCode"]), ("ok", 0))
    equal(client.run("print('\u00fc\u8868\U0001f600')")["stdout"], "\u00fc\u8868\U0001f600\n")
    equal(client.run("x = '" + "a" * 500000 + "'\nprint(len(x))")["stdout"], "500000\n")


@test("files: created, modified and deleted ones are told, recursively; untouched ones are not", core=True)
def _():
    client = sites.client()
    client.run("mkdir -p sub/deep; echo 1 >keep; echo 1 >sub/change; echo 1 >sub/deep/gone; echo 1 >same-size", "bash")
    result = client.run("sleep 0.01; echo 22 >sub/change; rm sub/deep/gone; mkdir new; echo x >new/file; echo 2 >same-size; "
                        "cat keep >/dev/null", "bash")
    equal({f["name"]: f["change"] for f in result["files"]},
          {"sub/change": "modified", "sub/deep/gone": "deleted", "new/file": "created", "same-size": "modified"})
    for file in result["files"]:
        equal("url" in file, file["change"] != "deleted", file["name"])
        if "url" in file:
            equal(client.download(file["url"]).status, 200, file["url"])
    equal(client.run("true", "bash")["files"], [])


@test("files stay with the conversation, nothing else does", core=True)
def _():
    client = sites.client()
    client.run("echo kept >f; echo lost >/tmp/f; sleep 300 &", "bash")
    result = client.run("cat f; ls /tmp; ls /dev/shm; ps -e 2>/dev/null | grep -c sleep; echo", "bash")
    equal(result["stdout"].split("\n")[0], "kept")
    check("lost" not in result["stdout"] and "\nf\n" not in result["stdout"], result["stdout"])
    other = sites.client()
    equal(other.run("ls -A", "bash")["stdout"], "")


@test("file names of any bytes: JSON is exact, the URL works (H-24)")
def _():
    client = sites.client()
    code = r"""
import os
import re
for name in (b'new\nline', b'tab\t', b'quo"te', b'inv\xff\xfe', b'-dash', b'\xe2\x80\xaertl', b'%41', b'a b', b'#?&'):
    open(name, 'wb').write(name)
"""
    result = client.run(code)
    equal(result["status"], "ok")
    equal(len(result["files"]), 9)
    for file in result["files"]:
        answer = client.download(file["url"])
        equal(answer.status, 200, file["url"])
        shown = answer.body.decode("utf-8", "replace")
        equal(file["name"].replace("\ufffd", ""), shown.replace("\ufffd", ""), "name")


@test("a sparse terabyte is a size, not an allocation (H-23); thousands of files are counted", timeout=90)
def _():
    site = sites.with_settings(**LIMITS)
    client = sites.new_conversation(site.client())
    result = client.run("truncate -s 1T huge 2>/dev/null || truncate -s 900G huge; ls -l huge; mkdir many; "
                        "for i in $(seq 3000); do echo >many/$i; done", "bash")
    huge = [f for f in result["files"] if f["name"] == "huge"]
    check(huge and huge[0]["size"] >= 900 << 30, f"{huge}")
    check(len(result["files"]) + result["filesOmitted"] == 3001, f"{len(result['files'])} + {result['filesOmitted']}")
    client.run("rm -rf huge many", "bash")


@test("pictures come back as image content, larger or further ones as links only (H-71)", core=True)
def _():
    client = sites.client()
    client.upload("one.png", PNG)
    code = """
import shutil
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.savefig("chart.png"); plt.savefig("chart.jpg"); plt.savefig("chart.svg")
open("fake.png", "w").write("no picture")
"""
    whole = client.run_whole(code)
    images = [block for block in whole["content"] if block["type"] == "image"]
    kinds = sorted(block["mimeType"] for block in images)
    equal(kinds, ["image/jpeg", "image/png", "image/png"])
    for block in images:
        data = base64.b64decode(block["data"], validate=True)
        check(data.startswith(b"\x89PNG\r\n\x1a\n" if block["mimeType"] == "image/png" else b"\xff\xd8\xff"), "magic bytes")
        check(len(data) > 1000, "a real picture")
    equal(len([b for b in whole["content"] if b["type"] == "resource_link"]), 4)
    whole = client.run_whole("from PIL import Image\nfor kind in ('gif', 'webp'): Image.open('chart.png').save(f'as.{kind}')")
    images = [block for block in whole["content"] if block["type"] == "image"]
    equal(sorted(block["mimeType"] for block in images), ["image/gif", "image/webp"])
    whole = client.run_whole("for i in range(9): open(f'c{i}.png', 'wb').write(open('chart.png', 'rb').read() + bytes([i]))\n"
                             "open('big.png', 'wb').write(open('chart.png', 'rb').read() + bytes(2 << 20))")
    equal(len([b for b in whole["content"] if b["type"] == "image"]), 4, "SANDBOX_IMAGES_MAX")
    equal(len([b for b in whole["content"] if b["type"] == "resource_link"]), 10)


@test("clients of older revisions get no content type that they do not know")
def _():
    client = sites.client()
    code = f"echo x >made.txt; base64 -d <<<{base64.b64encode(PNG).decode()} >made.png"
    arguments = {"conversationId": client.conversation, "language": "bash", "code": code}
    for version, link, structured in (("2024-11-05", False, False), ("2025-03-26", False, False),
                                      ("2025-06-18", True, True), ("2025-11-25", True, True)):
        result = client.tool("run_code", arguments, {"MCP-Protocol-Version": version})
        kinds = {block["type"] for block in result["content"]}
        check("image" in kinds, kinds)
        equal("resource_link" in kinds, link, version)
        if structured:
            check("structuredContent" in result, version)
        contains(json.dumps(result["content"]), "made.txt", version)
        told = result["structuredContent"] if structured else json.loads(result["content"][0]["text"])
        check(told["success"], version)


@test("Python: every advertised library imports; a chart, a table, a spreadsheet and a PDF are made", timeout=120)
def _():
    client = sites.new_conversation(sites.with_settings(SANDBOX_MEMORY="1g").client())  # for all of them at once
    runners = {r["language"]: r for r in client.structured("list_runners", {})["languages"]}
    names = [library["name"] for library in runners["python"]["libraries"]]
    for name in ("numpy", "pandas", "scipy", "matplotlib", "seaborn", "requests", "psycopg2", "openpyxl", "reportlab"):
        check(name in names, f"{name} is not advertised")
    result = client.run("".join(f"import {name}\n" for name in names) + "print('all')", timeout=120, waitMs=300000)
    equal((result["status"], result["stdout"]), ("ok", "all\n"), result["stderr"][-300:])
    client.upload("sales.csv", b"month,sales\nJan,10\nFeb,14\n")
    result = client.run("import pandas as pd\nfrom reportlab.pdfgen import canvas\nt = pd.read_csv('sales.csv')\nprint(t.describe())\n"
                        "t.to_excel('t.xlsx')\nc = canvas.Canvas('t.pdf'); c.drawString(9, 9, 'x'); c.save()", timeout=120, waitMs=300000)
    contains(result["stdout"], "mean")
    types = {f["name"]: f["mimeType"] for f in result["files"]}
    contains(types["t.xlsx"], "spreadsheetml")
    equal(types["t.pdf"], "application/pdf")


@test("TypeScript: csv-parser, papaparse, pg and postgres import from a script; types are no obstacle", core=True, timeout=120)
def _():
    client = sites.client()
    client.upload("sales.csv", b"month,sales\nJan,10\nFeb,14\n")
    result = client.run("""
import Papa from "papaparse";
import csv from "csv-parser";
import pg from "pg";
import postgres from "postgres";
import { createReadStream, readFileSync, writeFileSync } from "node:fs";
interface Row { month: string; sales: number }
const rows = Papa.parse<Row>(readFileSync("sales.csv", "utf8").trim(), { header: true, dynamicTyping: true }).data;
writeFileSync("sales.json", JSON.stringify(rows));
createReadStream("sales.csv").pipe(csv()).on("data", (r: Row) => console.log(r.month)).on("end", () => {
  console.log(typeof pg.Client, typeof postgres, rows.length, process.argv.slice(2).join());
});
""", "typescript", args=["a", "b"])
    equal(result["stdout"], "Jan\nFeb\nfunction function 2 a,b\n", result["stderr"][-500:])
    file = result["files"][0]
    equal((file["name"], file["mimeType"]), ("sales.json", "application/json"))
    equal(client.download(file["url"]).json(), [{"month": "Jan", "sales": 10}, {"month": "Feb", "sales": 14}])
    failed = client.run("const x: number = 1;\nthrow new Error('on purpose ' + x);", "typescript")
    equal((failed["status"], failed["exitCode"]), ("error", 1))
    contains(failed["stderr"], "on purpose 1")


@test("programs start in /data, also known as /mnt/data, as a user without further groups")
def _():
    result = sites.client().run("pwd; readlink -f /mnt/data; id -u; id -g; id -G; echo ~; umask", "bash")
    lines = result["stdout"].split("\n")
    equal(lines[:2], ["/data", "/data"])
    check(sites.is_sandbox_user(lines[2]), lines[2])
    equal(lines[4], lines[3], "further groups")


@test("FILE_BASE_URL is ours whatever the caller says, and links made with it work")
def _():
    client = sites.client()
    result = client.run("import os\nopen('x.txt', 'w').write('linked')\nprint(os.environ['FILE_BASE_URL'])",
                        environment={"FILE_BASE_URL": "https://evil.example"})
    url = result["stdout"].strip()
    check(url.startswith(sites.shared().base_url + "/files/"), url)
    equal(client.download(url + "/x.txt").body, b"linked")
    equal(result["fileBaseUrl"], url)


@test("network is off unless asked for: only lo, no name is resolved; on: an interface more (H-13, H-48, H-56)", core=True)
def _():
    client = sites.client()
    code = "import os\nprint(sorted(os.listdir('/sys/class/net')))"
    equal(client.run(code)["stdout"], "['lo']\n")
    equal(client.run("getent hosts example.org; echo $?", "bash")["stdout"].strip()[-1], "2")
    client = sites.new_conversation(network.site().client())
    equal(client.run(code, network=True)["stdout"].count("eth"), 1)


@test("SANDBOX_NETWORK=none refuses a run that asks for it (H-13)")
def _():
    client = sites.client()
    contains(client.run_error("print(1)", network=True), "network")
    equal(client.run("print(1)")["stdout"], "1\n")


@test("the dotted names of the first generation answer too")
def _():
    client = sites.client()
    result = client.structured("sandbox.upload_file", {"conversationId": client.conversation, "filename": "f", "content": "YQ=="})
    equal(result["success"], True)
    result = client.structured("sandbox.run_code", {"conversationId": client.conversation, "language": "bash", "code": "cat f"})
    equal(result["stdout"], "a")
    check(client.structured("sandbox.list_runners", {})["languages"], "languages")


@test("list_runners tells language, image, version and libraries with versions")
def _():
    languages = sites.client().structured("list_runners", {})["languages"]
    by_name = {r["language"]: r for r in languages}
    check({"python", "typescript", "bash"} <= set(by_name), str(list(by_name)))
    equal(list(by_name), sorted(by_name), "order")
    for runner in languages:
        check(runner["image"] and runner["version"], f"{runner['language']}")
    check(all(lib["name"] and lib["version"] for lib in by_name["python"]["libraries"]), "versions of libraries")
    contains(by_name["python"]["image"], "sandcgi-runner-workbench")


@test("arguments that are missing, wrong or over their limits are named, with what is allowed", core=True)
def _():
    client = sites.client()
    good = {"conversationId": "c", "language": "bash", "code": "echo never"}
    for name in good:
        if name != "conversationId":
            contains(client.tool_error("run_code", {k: v for k, v in good.items() if k != name}), name)
        contains(client.tool_error("run_code", good | {name: 5}), name)
    for name, bad in (("network", "maybe"), ("environment", ["A"]), ("environment", {"A": None}), ("timeout", "soon"), ("timeout", 0),
                      ("timeout", -1), ("timeout", 301), ("timeout", 0.5), ("stdin", [5]), ("args", {"x": 1}), ("args", [None]),
                      ("args", ["x"] * 65), ("args", ["x" * 70000]), ("args", ["a\0b"]), ("code", "x" * (1 << 20) + "x"),
                      ("stdin", "x" * ((1 << 20) + 1)), ("conversationId", "abc\n"),
                      ("conversationId", "x" * 257)):
        contains(client.tool_error("run_code", good | {name: bad}), name, f"{name}={str(bad)[:30]}")
    contains(client.tool_error("run_code", good | {"timeoutMs": 301}), "from 1000 to 300000 milliseconds")
    text = client.tool_error("run_code", good | {"language": "cobol"})
    for language in ("bash", "python", "typescript"):
        contains(text, language)
    equal(client.tool("run_code", good | {"timeoutMs": None, "args": None, "network": None})["structuredContent"]["status"], "ok")


@test("the shortest and fractional timeouts hold")
def _():
    client = sites.client()
    for seconds in (1, 1.5):
        start = time.monotonic()
        equal(client.run("sleep 20", "bash", timeout=seconds)["status"], "timeout")
        in_time(start, seconds + 3, "answered")


@test("more runs than allowed at once are answered busy, and the others are not harmed", core=True, timeout=90)
def _():
    site = sites.with_settings(SANDBOX_MAX_RUNS="2", SANDBOX_QUEUE="0", SANDCGI_WORKERS="8")
    clients = [sites.new_conversation(site.client()) for _ in range(5)]
    results = []

    def one(client):
        try:
            results.append(client.run("until [ -e go ]; do sleep 0.05; done", "bash")["status"])
        except ToolError as refused:
            results.append(refused.result["structuredContent"]["status"])
    threads = [threading.Thread(target=one, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(results) == 3, 20, "three are answered")
    equal(results, ["busy"] * 3)
    for client in clients:
        client.fresh().upload("go", b"", client.conversation)
    for thread in threads:
        thread.join()
    equal(results[3:], ["ok", "ok"])
    # A place is free again when its container has gone, which is a moment after the answer.
    wait_until(lambda: site.run_children() == [], 5, "the places are free")
    equal(clients[0].run("true", "bash")["status"], "ok")


@test("runs of one conversation and of many work side by side", timeout=120)
def _():
    site = sites.shared()
    conversation = f"many-{secrets.token_hex(4)}"
    results = []

    def one(number):
        client = site.client()
        result = client.run(f"echo {number} | tee file-{number}", "bash",
                            conversation if number % 2 else f"{conversation}-{number}")
        results.append((number, result["stdout"], f"file-{number}" in [f["name"] for f in result["files"]]))
    threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(sorted(results), [(n, f"{n}\n", True) for n in range(12)])

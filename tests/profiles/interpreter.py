#!/usr/bin/env python3
"""A user of the interpreter sandbox: sandboxes by session_id that keep their variables, files in them, charts."""
import base64
import json
import secrets

import client

NAMES = {"create_sandbox", "close_sandbox", "get_sandbox_status", "execute_code", "install_package", "create_run_close",
         "list_files", "read_file", "write_file", "upload_file", "connect", "send_command", "disconnect", "list_connections",
         "generate_line_chart", "generate_bar_chart", "generate_scatter_plot", "generate_interactive_chart", "generate_heatmap"}
SESSION = f"my-session-{secrets.token_hex(4)}"
ROWS = [{"month": "Jan", "sales": 10, "cost": 7}, {"month": "Feb", "sales": 14, "cost": 8}, {"month": "Mar", "sales": 9, "cost": 6}]


def told(c, tool, **arguments):
    return json.loads(c.text(tool, **arguments))


def stdout(answer):
    return "".join(answer["logs"]["stdout"])


def life(c):
    c.equal(c.text("create_sandbox", session_id=SESSION), f"Sandbox created successfully with session ID: {SESSION}")
    c.contains(c.text("create_sandbox", session_id=SESSION), "already exists.")
    status = told(c, "get_sandbox_status", session_id=SESSION)
    c.equal((status["status"], status["session_id"], set(status)), ("active", SESSION, {"status", "session_id", "interpreter_type"}))
    every = told(c, "get_sandbox_status")
    c.equal(set(every), {"active_sandbox_count", "active_sessions", "interpreter_type"})
    c.check(SESSION in every["active_sessions"] and every["active_sandbox_count"] >= 1, every)
    c.contains(told(c, "get_sandbox_status", session_id="nobody")["error"], "nobody")


def code(c):
    told(c, "execute_code", session_id=SESSION, code="import math\nnumbers = [1, 2, 3]")
    answer = told(c, "execute_code", session_id=SESSION, code="print(sum(numbers), math.floor(2.5))")
    c.equal((stdout(answer), answer["error"]), ("6 2\n", None))
    wrong = told(c, "execute_code", session_id=SESSION, code="print('before')\n1 / 0")
    c.equal(stdout(wrong), "before\n")
    c.contains(wrong["error"], "ZeroDivisionError")
    c.equal(stdout(told(c, "execute_code", session_id=SESSION, code="print(len(numbers))")), "3\n")
    c.contains(told(c, "execute_code", session_id="nobody", code="1")["error"], "nobody")
    once = told(c, "create_run_close", code="print('hello world')")
    c.equal((stdout(once), once["error"], once["sandbox_closed"], once["sandbox_removed"]), ("hello world\n", None, True, True))
    c.check(once["sandbox_status"], once)


def files(c):
    c.equal(set(told(c, "write_file", session_id=SESSION, file_path="/notes/a.txt", content="one\n")), {"path", "message"})
    c.equal(told(c, "read_file", session_id=SESSION, file_path="/notes/a.txt"), {"path": "/notes/a.txt", "content": "one\n"})
    up = told(c, "upload_file", session_id=SESSION, file_name="b.txt", file_content="two\n", destination_path="/notes")
    c.equal(up["path"], "/notes/b.txt")
    told(c, "upload_file", session_id=SESSION, file_name="c.txt", file_content="three\n")
    listed = told(c, "list_files", session_id=SESSION)
    c.equal(listed["path"], "/")
    c.check({"c.txt", "notes"} <= {one["name"] for one in listed["files"]}, listed)
    c.equal([one["name"] for one in told(c, "list_files", session_id=SESSION, path="/notes")["files"]], ["a.txt", "b.txt"])
    c.equal(stdout(told(c, "execute_code", session_id=SESSION, code="print(open('notes/b.txt').read())")), "two\n\n")
    for path in ("/../etc/passwd", "/none"):
        c.check(told(c, "read_file", session_id=SESSION, file_path=path)["error"], path)


def charts(c):
    def chart(name, **arguments):
        answer = told(c, f"generate_{name}", session_id=SESSION, title="A </script> $title", **arguments)
        c.check("error" not in answer, answer)
        c.equal(set(answer) - {"base64_image", "html_content"}, {"chart_type", "title", "file_path", "message"})
        return answer

    def picture(name, **arguments):
        answer = chart(name, **arguments)
        c.equal(base64.b64decode(answer["base64_image"])[:8], b"\x89PNG\r\n\x1a\n")
        return answer
    line = picture("line_chart", data=ROWS, x_key="month", y_keys=["sales", "cost"], x_label="m", y_label="n", save_path="/out/line.png")
    c.equal((line["chart_type"], line["file_path"]), ("line", "/out/line.png"))
    c.equal([one["name"] for one in told(c, "list_files", session_id=SESSION, path="/out")["files"]], ["line.png"])
    picture("bar_chart", data=ROWS, category_key="month", value_keys=["sales", "cost"])
    picture("bar_chart", data=ROWS, category_key="month", value_keys=["sales"], orientation="horizontal")
    picture("scatter_plot", data=ROWS, x_key="sales", y_key="cost", color_key="month", size_key="sales")
    picture("heatmap", data=[[1, 2], [3, 4]], row_labels=["a", "b"], col_labels=["c", "d"], cmap="plasma")
    page = chart("interactive_chart", data=ROWS, chart_type="bar", x_key="month", y_keys=["sales"])["html_content"]
    c.contains(page, "<svg")
    c.check("http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page, "the page needs others")
    c.equal(page.count("</script>"), 1)
    for wrong in [], [1], {"month": 1}:
        c.contains(told(c, "generate_line_chart", session_id=SESSION, data=wrong, x_key="month", y_keys=["sales"])["error"], "data must be a list of objects")
    hostile = "x'); import os; os.system('touch /data/pwned') #"
    c.contains(told(c, "generate_line_chart", session_id=SESSION, data=ROWS, x_key=hostile, y_keys=["sales"])["error"], "no row of data")
    c.check("pwned" not in c.text("list_files", session_id=SESSION), "an argument ran")


def telnet(c):
    refused = told(c, "connect", host="127.0.0.1", port=22)
    c.equal((refused["connected"], refused["host"], refused["port"]), (False, "127.0.0.1", 22))
    c.equal(told(c, "send_command", session_id="x", command="id")["success"], False)
    c.equal(told(c, "disconnect", session_id="x")["success"], False)
    c.equal(told(c, "list_connections"), {"count": 0, "connections": []})


def script(c):
    c.initialize("2025-06-18")
    c.equal({tool["name"] for tool in c.tools()}, NAMES)
    life(c)
    code(c)
    files(c)
    charts(c)
    telnet(c)
    package = told(c, "install_package", session_id=SESSION, package_name="not a package")
    c.equal((set(package), package["package"]), ({"package", "output", "error"}, "not a package"))
    c.check(package["error"], package)
    c.contains(c.text("close_sandbox", session_id=SESSION), "closed successfully")
    c.contains(told(c, "get_sandbox_status", session_id=SESSION)["error"], SESSION)


client.main(script)

#!/usr/bin/env python3
"""A user of the session sandbox: sandbox_* tools over Python sessions, results as models, failures as models with a code."""
import base64
import json
import re
import urllib.request

import client

NAMES = ["sandbox_upload_file", "sandbox_run_python", "sandbox_read_artifact", "sandbox_list_artifacts", "sandbox_close_session"]
HINTS = {"sandbox_upload_file": (False, False, False, False), "sandbox_run_python": (False, False, False, False),
         "sandbox_read_artifact": (True, False, True, False), "sandbox_list_artifacts": (True, False, True, False),
         "sandbox_close_session": (False, True, False, False)}
RUN = {"session_id", "run_id", "exit_code", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "artifacts", "duration_ms"}
ARTIFACT = {"path", "filename", "size_bytes", "mime_type", "download_url"}

CSV = b"channel,spend,clicks\nsearch,100,40\nsocial,50,30\n"
ANALYSIS = """
import pandas as pd
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
frame = pd.read_csv('/mnt/data/marketing.csv')
print(frame.spend.sum())
frame.plot.bar(x='channel', y='spend')
plt.savefig('/mnt/data/spend.png')
frame.to_excel('/mnt/data/report.xlsx')
"""


def model(c, tool, /, **arguments):
    result = c.call(tool, **arguments)
    c.check(not result.get("isError"), f"{tool}: {result}")
    c.equal(len(result["content"]), 1)
    told = json.loads(result["content"][0]["text"])
    c.equal(result["structuredContent"], {"result": told})
    return told


def failure(c, code, tool, /, **arguments):
    told = model(c, tool, **arguments)
    c.equal(told.get("error"), code)
    c.check(told["message"], "no message")
    return told


def offered(c):
    tools = c.tools()
    c.equal([tool["name"] for tool in tools], NAMES)
    for tool in tools:
        hints = tool["annotations"]
        c.equal(tuple(hints[name] for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")), HINTS[tool["name"]])


def analysis(c):
    """Upload, run, look, close: the way its demonstration goes."""
    up = model(c, "sandbox_upload_file", filename="marketing.csv", content_base64=base64.b64encode(CSV).decode())
    session = up["session_id"]
    c.check(re.fullmatch("sess_[0-9a-f]{12}", session), session)
    c.equal(up["path"], "/mnt/data/marketing.csv")
    run = model(c, "sandbox_run_python", code=ANALYSIS, session_id=session)
    c.equal(set(run), RUN)
    c.equal((run["session_id"], run["exit_code"], run["stdout"], run["stdout_truncated"]), (session, 0, "150\n", False))
    c.check(re.fullmatch(r"run_\d{8}T\d{6}Z_[0-9a-f]{4}", run["run_id"]), run["run_id"])
    artifacts = {one["filename"]: one for one in run["artifacts"]}
    c.equal(sorted(artifacts), ["report.xlsx", "spend.png"])
    picture = artifacts["spend.png"]
    c.equal(set(picture), ARTIFACT)
    c.equal((picture["path"], picture["mime_type"]), ("/mnt/data/spend.png", "image/png"))
    read = model(c, "sandbox_read_artifact", session_id=session, path="/mnt/data/spend.png")
    content = base64.b64decode(read["content_base64"])
    c.equal((content[:4], len(content), read["size_bytes"], read["filename"]),
            (b"\x89PNG", picture["size_bytes"], picture["size_bytes"], "spend.png"))
    if c.over_http:
        with urllib.request.urlopen(picture["download_url"], timeout=30, context=c.transport.context) as answer:
            c.equal(answer.read(), content)
    listed = model(c, "sandbox_list_artifacts", session_id=session)["artifacts"]
    c.equal(sorted(one["filename"] for one in listed), ["marketing.csv", "report.xlsx", "spend.png"])
    return session


def runs(c, session):
    """Files stay, variables do not; what ended a program is told."""
    model(c, "sandbox_run_python", code="x = 1\nopen('kept.txt', 'w').write('kept')", session_id=session)
    again = model(c, "sandbox_run_python", code="print(open('/mnt/data/kept.txt').read(), 'x' in globals())", session_id=session)
    c.equal((again["stdout"], again["artifacts"]), ("kept False\n", []))
    wrong = model(c, "sandbox_run_python", code="1 / 0", session_id=session)
    c.equal(wrong["exit_code"], 1)
    c.contains(wrong["stderr"], "ZeroDivisionError")
    many = model(c, "sandbox_run_python", session_id=session,
                 code="import os\nos.mkdir('cache')\nfor i in range(250): open(f'cache/{i}', 'w').close()\nopen('late.xlsx', 'w').write('x')")
    c.equal([one["filename"] for one in many["artifacts"]], ["late.xlsx"])
    long = model(c, "sandbox_run_python", code="print('a' * 3000000)", session_id=session)
    c.equal((long["exit_code"], long["stdout_truncated"]), (0, True))
    c.check(len(long["stdout"]) < 3000000, "nothing was cut")


def errors(c, session):
    content = base64.b64encode(b"x").decode()
    failure(c, "invalid_session_id", "sandbox_run_python", code="1", session_id="no/session")
    failure(c, "invalid_session_id", "sandbox_upload_file", filename="a", content_base64=content, session_id="x" * 65)
    failure(c, "session_not_found", "sandbox_read_artifact", session_id="no/session", path="/mnt/data/a")
    failure(c, "invalid_session_id", "sandbox_list_artifacts", session_id="no/session")
    failure(c, "session_not_found", "sandbox_close_session", session_id="no/session")
    failure(c, "invalid_filename", "sandbox_upload_file", filename="a b", content_base64=content, session_id=session)
    failure(c, "invalid_filename", "sandbox_upload_file", filename="a" * 256, content_base64=content, session_id=session)
    failure(c, "invalid_path", "sandbox_upload_file", filename="..", content_base64=content, session_id=session)
    failure(c, "invalid_content", "sandbox_upload_file", filename="a", content_base64="?", session_id=session)
    failure(c, "upload_too_large", "sandbox_upload_file", filename="a", content_base64="A" * 15000000, session_id=session)
    failure(c, "file_exists", "sandbox_upload_file", filename="kept.txt", content_base64=content, session_id=session)
    model(c, "sandbox_upload_file", filename="kept.txt", content_base64=content, session_id=session, overwrite=True)
    failure(c, "code_too_large", "sandbox_run_python", code="#" * 2000000, session_id=session)
    failure(c, "invalid_path", "sandbox_read_artifact", session_id=session, path="/etc/passwd")
    failure(c, "invalid_path", "sandbox_read_artifact", session_id=session, path="/mnt/data/../../etc/passwd")
    failure(c, "not_found", "sandbox_read_artifact", session_id=session, path="/mnt/data/none.txt")
    for tool in NAMES[2:]:
        arguments = {"path": "/mnt/data/a"} if tool == "sandbox_read_artifact" else {}
        failure(c, "session_not_found", tool, session_id="sess_000000000000", **arguments)


def too_large(c, session):
    """More than can be read at once: its size, and where it is."""
    model(c, "sandbox_run_python", code="open('big.bin', 'wb').write(b'z' * (11 << 20))", session_id=session)
    told = failure(c, "artifact_too_large", "sandbox_read_artifact", session_id=session, path="/mnt/data/big.bin")
    c.equal(told["size_bytes"], 11 << 20)
    if c.over_http:
        with urllib.request.urlopen(told["download_url"], timeout=30, context=c.transport.context) as answer:
            c.equal(len(answer.read()), 11 << 20)


def script(c):
    c.initialize("2025-06-18")
    offered(c)
    session = analysis(c)
    runs(c, session)
    errors(c, session)
    too_large(c, session)
    c.equal(model(c, "sandbox_close_session", session_id=session), {"status": "closed"})
    failure(c, "session_not_found", "sandbox_list_artifacts", session_id=session)


client.main(script)

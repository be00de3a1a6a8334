"""An nginx that is there: files, uploads and an upgrade, by the commands of nginx/README.md (tests/nginx/groups_walk.py has the rest of that way)."""
import threading

import existing
import runs
from harness import check, contains, equal, test, wait_until
from mcp import end_run

MADE = """import pathlib
pathlib.Path('chart.png').write_bytes(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(1000))
pathlib.Path('page.html').write_text('<script>')
"""


def _path(url, below):
    """Of a link with the public name."""
    public = f"https://{existing.NAME}"
    check(url.startswith(f"{public}{below}/"), url)
    return url.removeprefix(public)


def _files(client, below):
    """A program's files by their links; the path of one."""
    links = {file["name"]: _path(file["url"], below) for file in client.run(MADE)["files"]}
    chart = client.http("GET", links["chart.png"])
    equal((chart.status, len(chart.body), chart.headers["Content-Type"]), (200, 1008, "image/png"))
    equal((chart.headers["Content-Disposition"], chart.headers["X-Content-Type-Options"]), ("inline", "nosniff"))
    part = client.http("GET", links["chart.png"], headers={"Range": "bytes=1-3"})
    equal((part.status, part.body), (206, b"PNG"))
    page = client.http("GET", links["page.html"])
    equal((page.status, page.headers["Content-Disposition"]), (200, "attachment"))
    contains(page.headers["Content-Security-Policy"], "sandbox")
    folder, _, name = links["chart.png"].rpartition("/")
    equal(client.http("GET", f"{folder[:-4]}AAAA/{name}").status, 404, "another token")
    return links["chart.png"]


def _upload_link(client, name, below):
    return _path(client.structured("create_upload", {"conversationId": client.conversation, "filename": name})["url"], below)


def _calls(client, over, statuses):
    while not over.wait(0.02):
        statuses.append(client.request("ping").status)


def _walk(below):
    machine = existing.Machine(below)
    template = "/usr/local/share/sandcgi/nginx/server.conf.in"
    machine.do(f"echo '# of the version before' >>{template}")
    machine.do("walk_in")
    client, lasts, pings = machine.client(), machine.client(), machine.client()
    wait_until(lambda: client.structured("list_runners", {})["languages"], 20, "the runners are found")
    chart, link = _files(client, below), _upload_link(client, "up.bin", below)
    equal(client.http("PUT", link, b"u" * 300_000).status, 201)
    equal(client.http("PUT", link, b"again").status, 410)
    equal(client.run("wc -c <up.bin", "bash")["stdout"], "300000\n")

    link, run, over, statuses = _upload_link(client, "later.bin", below), lasts.begin_run(runs.UNTIL_GO + "echo over", "bash"), threading.Event(), []
    caller = threading.Thread(target=_calls, args=(pings, over, statuses), daemon=True)
    caller.start()
    machine.do("make_install")
    contains(machine.do("readlink /proc/$server/exe"), "(deleted)", "the program before the reload")
    path = f" --path {below}/" if below else ""
    contains(machine.do(f"sandcgi setup nginx --server-name {existing.NAME}{path}"), "nginx includes both files already")
    equal(machine.do("cat /etc/nginx/sandcgi/server.conf").count("version before"), 0, "the templates are not new")
    machine.do("nginx -t && reloaded nginx -s reload; kill -HUP $server")
    wait_until(lambda: machine.do("readlink /proc/$server/exe") == "/usr/local/bin/sandcgi\n", 20, "the new program serves")
    runs.go(lasts)
    result, status = end_run(run, 30)
    equal((status, result["stdout"]), (200, "over\n"), "the call that was under way")
    over.set()
    caller.join()
    check(len(statuses) > 20, f"{len(statuses)} calls")
    equal(set(statuses), {200}, "calls meanwhile")
    equal(len(client.http("GET", chart).body), 1008, "an old link")
    equal(client.http("PUT", link, b"x" * 1000).status, 201, "an old link for an upload")
    equal(client.run("wc -c <later.bin", "bash")["stdout"], "1000\n")


@test("an nginx that is there: a program's files by their links, an upload that a program reads, an upgrade without a refused call; old links stay", timeout=120)
def _():
    _walk("")


@test("an nginx that is there, below a path: the same", timeout=120)
def _():
    _walk("/sandbox")

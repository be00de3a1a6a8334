"""What real clients can do with this server: a test for each of them, and a table of all."""
import json
import os
import subprocess

import house
import sites
from harness import Failed, Skip, check, contains, equal, new_folder, test, wait_until
from mcp import API

SCRIPT = os.path.join(house.HERE, "table/table.mjs")
TRANSPORTS = ("http", "https", "stdio")
FOUND = {}  # client -> {(transport, cell): (state, why)}


def script(argument, **more):
    return subprocess.run([os.environ["NODE"], SCRIPT, argument], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **more)


def folders():
    return [os.environ[name] for name in ("NODE_FOLDER", "TABLE_FOLDER", "LARGE_FOLDER") if os.environ.get(name)]


def version(package):
    for folder in folders():
        path = os.path.join(folder, "node_modules", package, "package.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return json.load(file)["version"]
    return "not installed"


def servers(site, place, settings):
    """The three transports to one server."""
    environment = sites.clean_environment() | sites.SANITIZER_ENV | settings | {"SANDCGI_CONFIG": site.config}
    return {"http": {"url": site.url(place), "token": site.token},
            "https": {"url": site.base_url + place, "token": site.token},
            "stdio": {"command": [sites.BINARY, "stdio"], "env": environment}}


def cells_of(client, site):
    options = {"client": client, "folders": folders(), "servers": servers(site, "/mcp", {}), "control": servers(site, API, sites.OF_PROGRAMS)}
    done = script(json.dumps(options), env=os.environ | {"NODE_EXTRA_CA_CERTS": sites.certificate()[0]}, timeout=400)
    # The clients print remarks of their own.
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"transport":')]
    return {(one["transport"], one["cell"]): (one["state"], one["why"]) for one in lines}, done


def register(served):
    """served() is the server to ask. Returns what prints the tables."""
    known = json.loads(script("--names").stdout)
    kinds = ["small", "large"] if os.environ.get("LARGE_FOLDER") else ["small"]
    for kind in kinds:
        for row in known[kind]:
            register_client(served, row, known["cells"])
        register_readme(kind, known[kind], known["cells"])
    register_strict(served)
    return lambda: "\n".join(markdown(known[kind], known["cells"]) for kind in kinds)


def register_client(served, row, cells):
    name = row["name"]

    @test(f"table: {name} over http, https and stdio", timeout=450)
    def _():
        site = served()
        found, done = cells_of(name, site)
        FOUND[name] = found
        bad = [f"{cell} over {transport}: {why}" for (transport, cell), (state, why) in found.items() if state == "FAILED"]
        missing = [f"{cell} over {transport}: not tried" for transport in TRANSPORTS for cell in cells if (transport, cell) not in found]
        check(not bad and not missing, "\n".join(bad + missing) + ("\n" + done.stderr[-1500:] if missing else ""))
        wait_until(lambda: not site.containers(), 10, "all containers are gone")


# ---- the Inspector's opinion of the schemas ----

INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def findings(*server):
    """What --strict says of the tools' schemas: pairs of tool and place."""
    command = [os.environ["NODE"], os.path.join(os.environ["TABLE_FOLDER"], INSPECTOR), "--cli", "--method", "tools/list", "--strict",
               "--protocol-era", "auto", "--format", "json", *server]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=60,
                          env=os.environ | {"HOME": new_folder("home")})
    try:
        answer = json.loads(done.stdout)
    except ValueError as problem:
        raise Failed(f"exit {done.returncode}: {done.stderr[-1000:]}") from problem
    check(answer["result"]["tools"], "no tools")
    return [(one["toolName"], found["path"]) for one in answer.get("schemaFindings", []) for found in one["findings"]]


def register_strict(served):
    @test("the Inspector's --strict: nothing at /mcp, at /mcp/api and of other servers' tools", timeout=120)
    def _():
        site = served()
        header = f"Authorization: Bearer {site.token}"
        for place in ("/mcp", API):
            equal(findings("--server-url", site.url(place), "--transport", "http", "--header", header), [], place)
        for tools in ("runner", "session", "container", "interpreter"):
            equal(findings("--", sites.BINARY, "stdio", "--config", site.config, "--tools", tools), [], tools)


# ---- the table ----

def markdown(rows, cells):
    """The table of those that were run, with a line for each reason; "" without any."""
    lines, notes = [], []
    for row in rows:
        found = FOUND.get(row["name"])
        if found:
            lines.append(f"| {row['name']} | {version(row['package'])} | {' | '.join(words(found, cell) for cell in cells)} |\n")
            notes += notes_of(row["name"], cells, found)
    head = f"| client | version | {' | '.join(cells)} |\n|{'---|' * (len(cells) + 2)}\n"
    return head + "".join(lines) + "\n" + "".join(notes) if lines else ""


def words(found, cell):
    """One word when the transports agree, else one for each."""
    states = [found.get((transport, cell), ("FAILED", ""))[0] for transport in TRANSPORTS]
    return states[0] if len(set(states)) == 1 else " / ".join(states)


def notes_of(name, cells, found):
    reasons = {}
    for transport in TRANSPORTS:
        for cell in cells:
            state, why = found.get((transport, cell), ("FAILED", "not tried"))
            if state != "ok":
                reasons.setdefault(f"FAILED: {why}" if state == "FAILED" else why, []).append((transport, cell))
    for why, where in reasons.items():
        transports = [one for one in TRANSPORTS if one in dict(where)]
        tried = [one for one in cells if one in {cell for _, cell in where}]
        what = "" if len(tried) == len(cells) else ", " + ", ".join(tried)
        place = "" if len(transports) == len(TRANSPORTS) else " over " + " and ".join(transports)
        yield f"- {name}{what}{place}: {why}\n"


def register_readme(kind, rows, cells):
    @test(f"table: README.md has that of the {kind} clients as it is")
    def _():
        if any(row["name"] not in FOUND for row in rows):
            raise Skip("not all of them were run")
        with open(os.path.join(house.HERE, "README.md"), encoding="utf-8") as file:
            contains(file.read(), markdown(rows, cells), "README.md")

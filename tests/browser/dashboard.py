#!/usr/bin/env python3
"""The dashboard with real data, without Grafana: a server under a mixed load, Prometheus beside it, each panel drawn from what it answers.
  DOCKER_HOST=… tests/browser/dashboard.py [--seconds N] FOLDER      FOLDER: gets dashboard.html and, where Chromium is, dashboard.png
SANDCGI_TEST_BINARY names a program that is built already. Look at the picture: nothing is checked here (tests/e2e/test_monitoring.py does)."""
import argparse
import html
import os
import random
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import monitoring  # noqa: E402  pylint: disable=wrong-import-position
import sites  # noqa: E402  pylint: disable=wrong-import-position

# (language, program, other arguments): what conversations do, mistakes included.
PROGRAMS = (
    ("python", "print(sum(range(100000)))", {}),
    ("python", "import pandas\nprint(pandas.Series(range(1000)).describe())", {}),
    ("python", "open('a.bin', 'wb').write(bytes(3 << 20)); print('stored')", {}),
    ("python", "raise SystemExit(3)", {}),
    ("typescript", "console.log([1, 2, 3].map(x => x * x))", {}),
    ("bash", "for i in $(seq 2000); do :; done; ls -l", {}),
    ("bash", "sleep 20", {"timeout": 2}),
)
COLUMN, ROW, WIDTH = 52, 26, 24
COLORS = ("#5b8ff9", "#5ad8a6", "#f6bd16", "#e8684a", "#6dc8ec", "#9270ca", "#ff9d4d", "#269a99", "#ff99c3", "#9e8b3d", "#7c8aa5", "#aa5555", "#55aa55")
UNITS = (("bytes", (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10))), ("s", (("s", 1), ("ms", 1e-3))))


def work(site, end):
    """One person: conversations of a few programs each."""
    while time.monotonic() < end:
        client = sites.new_conversation(site.client())
        sandbox = None
        for _turn in range(random.randint(2, 8)):
            language, code, more = random.choice(PROGRAMS)
            client.run_whole(code, language, **more)
            client.tool("run_code", {"language": "cobol", "code": "x"})
            time.sleep(random.uniform(0.1, 1.5))
        if random.random() < 0.3:
            sandbox = client.tool("create_sandbox", {"conversationId": client.conversation, "language": "bash"})
            client.tool("exec", {"sandboxId": (sandbox.get("structuredContent") or {}).get("sandboxId", ""), "commands": ["seq 20000 | sort -R | tail -1"]})


def amount(value, unit):
    for name, steps in UNITS:
        for suffix, size in steps if name == unit else ():
            if abs(value) >= size:
                return f"{value / size:.3g} {suffix}"
    if unit == "dateTimeAsIso":
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(value / 1000))
    return f"{value:.3g}" + (" /s" if unit == "reqps" else "")


def legend(target, labels):
    text = target["legendFormat"]
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text or labels.get("instance", "")


def series_of(prometheus, panel, seconds):
    """[(legend, [(time, number)])] of all expressions of a panel."""
    return [(legend(target, labels), points) for target in panel["targets"]
            for labels, points in prometheus.history(monitoring.filled(target["expr"], "10s"), seconds, 2) if points]


def draw(series, unit, width, height):
    """Lines over time."""
    times = [at for _name, points in series for at, _value in points]
    top = max([value for _name, points in series for _at, value in points] + [0]) * 1.1 or 1
    first, span = min(times), max(times) - min(times) or 1
    parts = [f'<text x="4" y="12" class="axis">{amount(top, unit)}</text><line x1="0" y1="{height}" x2="{width}" y2="{height}" class="rule"/>']
    for i, (_name, points) in enumerate(series):
        path = " ".join(f"{(at - first) / span * width:.1f},{height - value / top * height:.1f}" for at, value in points)
        parts.append(f'<polyline points="{path}" style="stroke:{COLORS[i % len(COLORS)]}"/>')
    return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'


def panel_html(prometheus, panel, seconds):
    place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
    series = series_of(prometheus, panel, seconds)
    width, height = place["w"] * COLUMN - 8, place["h"] * ROW - 8
    if panel["type"] == "stat":
        body = "".join(f"<b>{amount(points[-1][1], unit)}</b>" for _name, points in series)
    elif series:
        names = "".join(f'<i style="color:{COLORS[i % len(COLORS)]}">{html.escape(name)} {amount(points[-1][1], unit)}</i>' for i, (name, points) in enumerate(series))
        body = draw(series, unit, width - 16, height - 76) + f"<p>{names}</p>"
    else:
        body = "<em>no data</em>"
    return (f'<div style="left:{place["x"] * COLUMN}px;top:{place["y"] * ROW}px;width:{width}px;height:{height}px">'
            f'<h2>{html.escape(panel["title"])}</h2>{body}</div>')


STYLE = """body{background:#111217;color:#ccccdc;font:12px sans-serif;margin:8px;position:relative}
div{position:absolute;background:#181b1f;border:1px solid #2c3235;box-sizing:border-box;padding:6px 8px;overflow:hidden}
h2{font-size:13px;margin:0 0 4px}b{font-size:22px;color:#73bf69}i{font-style:normal;margin-right:10px;display:inline-block}p{margin:2px 0}em{color:#e8684a}
polyline{fill:none;stroke-width:1.5}.rule{stroke:#2c3235}.axis{fill:#8e8e8e;font-size:10px}"""


def page(prometheus, seconds):
    panels = monitoring.dashboard()["panels"]
    body = "".join(panel_html(prometheus, panel, seconds) for panel in panels)
    return f"<!doctype html><meta charset=utf-8><title>sandcgi</title><style>{STYLE}</style><body>{body}", max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) * ROW + 16


def shoot(folder, height):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("there is no Chromium: no picture")
        return
    subprocess.run([chromium, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH * COLUMN + 16},{height}",
                    f"--screenshot={folder}/dashboard.png", f"file://{folder}/dashboard.html"], check=True, capture_output=True, timeout=60)
    print(f"{folder}/dashboard.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=90, help="of load (default 90)")
    parser.add_argument("folder")
    options = parser.parse_args()
    folder = os.path.abspath(options.folder)
    os.makedirs(folder, exist_ok=True)
    address = f"127.0.0.1:{sites.free_port()}"
    site = sites.Site({"SANDCGI_METRICS": address, "SANDBOX_WARM": "python=1,bash=1,typescript=1"})
    try:
        site.start()
        prometheus = monitoring.Prometheus(address)
        end = time.monotonic() + options.seconds
        people = [threading.Thread(target=work, args=(site, end)) for _ in range(3)]
        for one in people:
            one.start()
        for one in people:
            one.join()
        text, height = page(prometheus, options.seconds)
    finally:
        site.stop()
        harness.close()
    with open(f"{folder}/dashboard.html", "w", encoding="utf-8") as file:
        file.write(text)
    shoot(folder, height)


if __name__ == "__main__":
    main()

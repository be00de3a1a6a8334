"""Draws one chart. The arguments come as JSON on standard input: no code is made from them. Prints one JSON object."""
import json
import os
import sys

PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>%(title)s</title><style>
body { font: 14px sans-serif; margin: 16px } svg { width: 100%%; height: auto; max-width: 900px }
.tip { position: fixed; background: #222; color: #fff; padding: 3px 7px; border-radius: 3px; pointer-events: none; display: none }
.key { cursor: pointer; user-select: none }
</style></head><body><svg id="chart" viewBox="0 0 900 520"></svg><div class="tip" id="tip"></div>
<script>
const chart = %(chart)s;
const svg = document.getElementById("chart"), tip = document.getElementById("tip"), hidden = new Set();
const colors = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"];
function add(name, attributes, text) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) one.setAttribute(key, attributes[key]);
    if (text !== undefined) one.textContent = text;
    svg.appendChild(one);
    return one;
}
function mark(name, attributes, label) {
    const one = add(name, attributes);
    one.addEventListener("mousemove", e => {
        tip.textContent = label; tip.style.display = "block"; tip.style.left = e.clientX + 12 + "px"; tip.style.top = e.clientY + "px";
    });
    one.addEventListener("mouseleave", () => { tip.style.display = "none"; });
}
function draw() {
    svg.replaceChildren();
    const shown = chart.series.filter(s => !hidden.has(s.name)), n = chart.labels.length;
    const values = shown.flatMap(s => s.values).filter(v => v !== null);
    const low = Math.min(0, ...values), high = Math.max(low + 1e-9, ...values);
    const x = i => 70 + 800 * (i + 0.5) / Math.max(n, 1), y = v => 450 - 390 * (v - low) / (high - low);
    add("text", {x: 450, y: 28, "text-anchor": "middle", "font-size": 18}, chart.title);
    add("text", {x: 470, y: 510, "text-anchor": "middle"}, chart.x_label);
    add("text", {x: 16, y: 255, "text-anchor": "middle", transform: "rotate(-90 16 255)"}, chart.y_label);
    for (let i = 0; i <= 5; i++) {
        const v = low + (high - low) * i / 5;
        add("line", {x1: 70, x2: 870, y1: y(v), y2: y(v), stroke: "#ddd"});
        add("text", {x: 64, y: y(v) + 4, "text-anchor": "end", "font-size": 11}, +v.toPrecision(4));
    }
    const step = Math.ceil(n / 12);
    chart.labels.forEach((l, i) => { if (i %% step === 0) add("text", {x: x(i), y: 468, "text-anchor": "middle", "font-size": 11}, l); });
    shown.forEach((s, k) => {
        const color = colors[chart.series.indexOf(s) %% colors.length], width = 800 / Math.max(n, 1) * 0.8 / shown.length;
        const points = s.values.map((v, i) => v === null ? null : [x(i), y(v), i]).filter(p => p);
        if (chart.type === "line")
            add("polyline", {points: points.map(p => p[0] + "," + p[1]).join(" "), fill: "none", stroke: color, "stroke-width": 2});
        for (const [px, py, i] of points) {
            const label = chart.labels[i] + " — " + s.name + ": " + s.values[i];
            if (chart.type === "bar")
                mark("rect", {x: px - width * shown.length / 2 + width * k, y: Math.min(py, y(0)), width: width, height: Math.abs(py - y(0)), fill: color}, label);
            else
                mark("circle", {cx: px, cy: py, r: 4, fill: color}, label);
        }
    });
    chart.series.forEach((s, k) => {
        const one = add("text", {x: 880, y: 60 + 18 * k, "text-anchor": "end", class: "key", fill: colors[k %% colors.length],
                                 opacity: hidden.has(s.name) ? 0.3 : 1}, s.name);
        one.addEventListener("click", () => { hidden.has(s.name) ? hidden.delete(s.name) : hidden.add(s.name); draw(); });
    });
}
draw();
</script></body></html>
"""


class Wrong(Exception):
    """What is wrong with the arguments."""


def rows(arguments):
    data = arguments.get("data")
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        raise Wrong("data must be a list of objects, with at least one")
    return data


def column(data, key, numbers=False):
    if not isinstance(key, str) or not any(key in row for row in data):
        raise Wrong(f"no row of data has the key {key!r}")
    values = [row.get(key) for row in data]
    if numbers and not all(value is None or isinstance(value, (int, float)) for value in values):
        raise Wrong(f"the values of {key!r} must be numbers")
    return values


def numbers_of(data, key):
    return [float("nan") if value is None else value for value in column(data, key, True)]


def keys_of(arguments, name):
    keys = arguments.get(name)
    keys = [keys] if isinstance(keys, str) else keys
    if not isinstance(keys, list) or not keys:
        raise Wrong(f"{name} must be a list of keys")
    return keys


def line(axes, a):
    data = rows(a)
    for key in keys_of(a, "y_keys"):
        axes.plot(column(data, a.get("x_key")), numbers_of(data, key), marker="o", label=key)
    axes.legend()


def bar(axes, a):
    data, keys = rows(a), keys_of(a, "value_keys")
    names = [str(value) for value in column(data, a.get("category_key"))]
    thick = 0.8 / len(keys)
    across = a.get("orientation", "vertical") == "horizontal"
    for i, key in enumerate(keys):
        at = [place + thick * (i - (len(keys) - 1) / 2) for place in range(len(names))]
        (axes.barh if across else axes.bar)(at, numbers_of(data, key), thick, label=key)
    (axes.set_yticks if across else axes.set_xticks)(range(len(names)), names)
    axes.legend()


def scatter(axes, a):
    data = rows(a)
    color, size = a.get("color_key"), a.get("size_key")
    shades = column(data, color) if color else None
    if shades and not all(isinstance(value, (int, float)) for value in shades):
        kinds = sorted({str(value) for value in shades})
        shades = [kinds.index(str(value)) for value in shades]
    points = axes.scatter(numbers_of(data, a.get("x_key")), numbers_of(data, a.get("y_key")), c=shades,
                          s=numbers_of(data, size) if size else None)
    if shades:
        axes.figure.colorbar(points, label=color)


def heatmap(axes, a):
    data = a.get("data")
    if (not isinstance(data, list) or not data or not all(isinstance(row, list) and len(row) == len(data[0]) for row in data)
            or not all(isinstance(value, (int, float)) for row in data for value in row)):
        raise Wrong("data must be a list of rows of numbers, all of one length")
    try:
        drawn = axes.imshow(data, cmap=a.get("cmap") or "viridis", aspect="auto")
    except ValueError as problem:
        raise Wrong(str(problem)[:200]) from None
    axes.figure.colorbar(drawn)
    for labels, count, ticks in ((a.get("col_labels"), len(data[0]), axes.set_xticks), (a.get("row_labels"), len(data), axes.set_yticks)):
        if labels:
            if not isinstance(labels, list) or len(labels) != count:
                raise Wrong("row_labels and col_labels must name every row and column")
            ticks(range(count), [str(label) for label in labels])


def picture(kind, a, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(10, 6))
    {"line": line, "bar": bar, "scatter": scatter, "heatmap": heatmap}[kind](axes, a)
    axes.set(title=text(a, "title"), xlabel=text(a, "x_label"), ylabel=text(a, "y_label"))
    figure.tight_layout()
    figure.savefig(path, format="png", dpi=100)


def text(a, name):
    value = a.get(name)
    return "" if value is None else str(value).replace("$", r"\$")


def page(a, path):
    data = rows(a)
    kind = a.get("chart_type", "line")
    if kind not in ("line", "bar", "scatter"):
        raise Wrong("chart_type must be line, bar or scatter")
    series = [{"name": key, "values": column(data, key, True)} for key in keys_of(a, "y_keys")]
    labels = [str(value) for value in column(data, a.get("x_key"))]
    chart = {"type": kind, "labels": labels, "series": series} | {
        name: str(a.get(name) or "") for name in ("title", "x_label", "y_label")}
    # Nothing of it may end the script or the title.
    safe = json.dumps(chart).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    title = chart["title"].replace("&", "&amp;").replace("<", "&lt;")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PAGE % {"chart": safe, "title": title})


def main():
    asked = json.load(sys.stdin)
    path = os.path.join("/data", asked["name"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        if asked["kind"] == "interactive":
            page(asked["arguments"], path)
        else:
            picture(asked["kind"], asked["arguments"], path)
    except Wrong as problem:
        print(json.dumps({"error": str(problem)}))
    else:
        print(json.dumps({"ok": True}))


main()

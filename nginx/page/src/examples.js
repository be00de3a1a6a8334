// Programs to begin with. A set one needs: network.

const python = [
  ["Hello", `import platform

name = "world"
print(f"Hello, {name}! This is Python {platform.python_version()}.")
`],
  ["Analyse a CSV", `import io
import pandas as pd

# Drop a CSV of your own on this page and read it with pd.read_csv("name.csv").
sample = io.StringIO("""month,region,sales
2026-01,north,120
2026-01,south,95
2026-02,north,138
2026-02,south,101
2026-03,north,131
2026-03,south,127
2026-04,north,156
2026-04,south,133
""")

table = pd.read_csv(sample)
print(table.describe(), "\\n")

by_month = table.pivot_table(index="month", columns="region", values="sales", aggfunc="sum")
by_month["total"] = by_month.sum(axis=1)
by_month["growth %"] = (by_month["total"].pct_change() * 100).round(1)
print(by_month)
by_month.to_csv("sales-by-month.csv")
`],
  ["Three charts", `import numpy as np
import matplotlib.pyplot as plt

rng = np.random.default_rng(7)
x = np.linspace(0, 4 * np.pi, 400)
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.figsize": (7, 3.6), "figure.dpi": 120})

plt.figure()
for n in range(1, 5):
    plt.plot(x, np.sin(x * n / 2) * np.exp(-x / (4 * n)), label=f"n = {n}")
plt.title("Damped waves")
plt.legend(frameon=False)

plt.figure()
plt.hist([rng.normal(0, 1, 4000), rng.normal(2, 0.7, 3000)], bins=60, stacked=True, label=["first", "second"])
plt.title("Two groups")
plt.legend(frameon=False)

plt.figure()
walk = rng.normal(size=(5, 500)).cumsum(axis=1)
plt.plot(walk.T, linewidth=1)
plt.title("Five random walks")

print("Open figures come back by themselves: no savefig is needed.")
`],
  ["Web request", `import requests

answer = requests.get("https://example.org/", timeout=10)
print(answer.status_code, answer.headers["content-type"])
print(answer.text[:400])
`, { network: true }],
  ["Long run with progress", `import sys
import time

steps = 40
for n in range(steps + 1):
    bar = "━" * n + " " * (steps - n)
    print(f"\\r\\033[32m{bar}\\033[0m {100 * n // steps:3d} %", end="", flush=True)
    time.sleep(0.25)
print("\\n\\033[1mdone\\033[0m")
print("This line went to standard error.", file=sys.stderr)
`],
];

const typescript = [
  ["Hello", `const name: string = "world";
console.log(\`Hello, \${name}! This is Bun \${Bun.version}.\`);
`],
  ["CSV", `import Papa from "papaparse";

const sample = \`product,price,sold
Lamp,39.5,12
Chair,89,7
Desk,240,3
\`;

type Row = { product: string; price: number; sold: number };
const { data } = Papa.parse<Row>(sample.trim(), { header: true, dynamicTyping: true });
const rows = data.map((row) => ({ ...row, revenue: row.price * row.sold }));

console.table(rows);
await Bun.write("revenue.csv", Papa.unparse(rows));
`],
  ["JSON", `const planets = [
  { name: "Mercury", radiusKm: 2440, moons: 0 },
  { name: "Earth", radiusKm: 6371, moons: 1 },
  { name: "Jupiter", radiusKm: 69911, moons: 95 },
];

const largest = planets.reduce((a, b) => (a.radiusKm > b.radiusKm ? a : b));
console.log(JSON.stringify({ count: planets.length, largest: largest.name, moons: planets.reduce((n, p) => n + p.moons, 0) }, null, 2));
await Bun.write("planets.json", JSON.stringify(planets, null, 2));
`],
];

const bash = [
  ["Hello", `echo "Hello from $(bash --version | head -n 1)"
df -h /data | tail -n 1
`],
  ["Text tools", `printf '%s\\n' pear apple fig apple pear apple > fruit.txt
sort fruit.txt | uniq -c | sort -rn | awk '{ printf "%-8s %s\\n", $2, $1 }'
jq -n '[range(5) | {n: ., square: (. * .)}]' | tee squares.json
`],
];

export const EXAMPLES = { python, typescript, bash };

// A data analyst's session by the official SDK's client: a large table goes up, is profiled and drawn, becomes a report, all of
// it comes down as one archive, and the conversation is deleted. Options and output as in clients.mjs.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { check, failures, short, step } from './steps.mjs';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const ROWS = 50_000;
const REGIONS = ['north', 'south', 'east', 'west'];
const conversationId = `analysis-${process.pid}-${Date.now().toString(36)}`;
const client = new Client({ name: 'sandcgi-tests', version: '1.0.0' });
const links = {};

// ---- the table: the same at every run, and what is true of it ----

function makeTable() {
  const lines = ['day,region,units,price'];
  const units = Object.fromEntries(REGIONS.map((region) => [region, 0]));
  for (let i = 0, seed = 1; i < ROWS; i += 1) {
    seed = (seed * 48271) % 2147483647;
    const region = REGIONS[seed % 4];
    const n = (seed >> 8) % 100;
    units[region] += n;
    const day = new Date(Date.UTC(2025, 0, 1 + (i % 365))).toISOString().slice(0, 10);
    lines.push(`${day},${region},${n},${i % 500 === 0 ? '' : (1 + (seed % 9000) / 100).toFixed(2)}`);
  }
  return { bytes: Buffer.from(`${lines.join('\n')}\n`), units, missing: ROWS / 500 };
}

const table = makeTable();

// ---- calls ----

async function call(name, args) {
  const result = await client.callTool({ name, arguments: { conversationId, ...args } }, undefined, { timeout: 80_000 });
  check(!result.isError, `${name}: ${short(result.content)}`);
  return result;
}

const structured = async (name, args) => (await call(name, args)).structuredContent;

async function run(code) {
  const result = await call('run_code', { language: 'python', code });
  check(result.structuredContent.status === 'ok', `status ${result.structuredContent.status}: ${short(result.structuredContent.stderr)}`);
  for (const file of result.structuredContent.files) links[file.name] = file.url;
  return result;
}

async function download(url) {
  const response = await fetch(url);
  check(response.status === 200, `GET answers ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

// Name to content of the regular files; anything else in the archive is a failure. Extended headers are passed over.
function readTar(bytes) {
  const files = new Map();
  for (let at = 0; at + 512 <= bytes.length && bytes[at] !== 0;) {
    const field = (from, len) => bytes.subarray(at + from, at + from + len).toString('utf8').split('\0')[0];
    const size = Number.parseInt(field(124, 12), 8);
    const type = field(156, 1);
    if (type !== 'x') {
      check(type === '0' || type === '', `a member of type ${type}`);
      files.set(field(0, 100), bytes.subarray(at + 512, at + 512 + size));
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}

// ---- the session ----

async function connect() {
  const requestInit = { headers: { Authorization: `Bearer ${options.token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(options.url), { requestInit }));
}

async function upload() {
  const ticket = await structured('create_upload', { filename: 'sales.csv', size: table.bytes.length });
  check(ticket.method === 'PUT' && ticket.url.startsWith(`${new URL(options.url).origin}/`), `the ticket is ${short(ticket)}`);
  const put = await fetch(ticket.url, { method: 'PUT', body: table.bytes });
  const said = await put.text();
  check(put.ok, `PUT answers ${put.status}: ${said}`);
  const again = await fetch(ticket.url, { method: 'PUT', body: table.bytes });
  check(again.status === 410, `the second PUT answers ${again.status}`);
}

async function profile() {
  const result = await run(`
import json, pandas as pd
df = pd.read_csv("sales.csv", parse_dates=["day"])
print(json.dumps({"rows": len(df), "missing": int(df.price.isna().sum()), "days": int(df.day.nunique()),
                  "units": {k: int(v) for k, v in df.groupby("region").units.sum().items()}}))`);
  const found = JSON.parse(result.structuredContent.stdout);
  check(found.rows === ROWS && found.missing === table.missing && found.days === 365, `the profile is ${short(found)}`);
  for (const region of REGIONS) check(found.units[region] === table.units[region], `${region}: ${short(found.units)}`);
}

async function draw() {
  const result = await run(`
import os
import pandas as pd, matplotlib.pyplot as plt
df = pd.read_csv("sales.csv", parse_dates=["day"])
os.makedirs("charts")
for name, draw in {"regions": lambda ax: df.groupby("region").units.sum().plot.bar(ax=ax),
                   "days": lambda ax: df.groupby("day").units.sum().plot(ax=ax),
                   "prices": lambda ax: df.price.plot.hist(bins=40, ax=ax)}.items():
    figure, ax = plt.subplots()
    draw(ax)
    figure.savefig(f"charts/{name}.png")
    plt.close(figure)`);
  const images = result.content.filter((block) => block.type === 'image');
  check(images.length === 3, `${images.length} pictures came inline`);
  const inline = new Set(images.map((image) => image.data));
  for (const name of ['regions', 'days', 'prices']) {
    const bytes = await download(links[`charts/${name}.png`]);
    check(bytes.subarray(1, 4).toString() === 'PNG', `${name} is no PNG`);
    check(inline.has(bytes.toString('base64')), `${name} inline is another picture than behind its link`);
  }
}

async function report() {
  await run(`
import pandas as pd, matplotlib.pyplot as plt
from matplotlib.backends.backend_pdf import PdfPages
df = pd.read_csv("sales.csv", parse_dates=["day"])
summary = df.groupby("region").agg(units=("units", "sum"), mean_price=("price", "mean"))
with pd.ExcelWriter("report.xlsx") as book:
    summary.to_excel(book, sheet_name="regions")
    df.head(1000).to_excel(book, sheet_name="sample", index=False)
with PdfPages("report.pdf") as pdf:
    for column in summary:
        figure, ax = plt.subplots()
        summary[column].plot.bar(ax=ax, title=column)
        pdf.savefig(figure)
        plt.close(figure)`);
  const book = await download(links['report.xlsx']);
  const pdf = await download(links['report.pdf']);
  check(book.subarray(0, 2).toString() === 'PK' && book.length > 10_000, 'report.xlsx is no workbook');
  check(pdf.subarray(0, 5).toString() === '%PDF-', 'report.pdf is no PDF');
  const back = await run('import pandas as pd; print(int(pd.read_excel("report.xlsx", sheet_name="regions").units.sum()))');
  const units = Object.values(table.units).reduce((a, b) => a + b);
  check(Number(back.structuredContent.stdout) === units, `the workbook says ${back.structuredContent.stdout}`);
}

async function archive() {
  const link = await structured('download_archive', {});
  const files = readTar(gunzipSync(await download(link.url)));
  links.archive = link.url;
  const want = ['sales.csv', 'charts/regions.png', 'charts/days.png', 'charts/prices.png', 'report.xlsx', 'report.pdf'];
  check(files.size === want.length && link.files === want.length, `the archive holds ${[...files.keys()]}`);
  check(files.get('sales.csv').equals(table.bytes), 'the table in the archive is another');
  for (const name of want.slice(1)) check(files.get(name).equals(await download(links[name])), `${name} in the archive is another`);
}

async function remove() {
  const { deleted } = await structured('delete_conversation', {});
  check(deleted === true, `deleted is ${deleted}`);
  for (const [name, url] of Object.entries(links)) {
    const { status } = await fetch(url);
    check(status === 404, `${name} still answers ${status}`);
  }
}

await step('connects', connect);
if (failures() === 0) {
  await step('uploads 50,000 rows by PUT, once', upload);
  await step('profiles them with pandas', profile);
  await step('draws three charts, which come inline', draw);
  await step('makes a workbook and a PDF', report);
  await step('fetches all of it as one archive', archive);
  await step('deletes the conversation', remove);
}
await step('closes', () => client.close());
process.exit(failures() ? 1 : 0);

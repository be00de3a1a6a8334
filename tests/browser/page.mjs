// The tests of the page. Started by run.py.
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { axeSource, check, equal, figures, runTests, test, until } from "./browser.mjs";
import { hostileFiles, hostileOutput } from "./hostile.mjs";
import { call, conversation, drawn, ended, enter, output, run, write } from "./steps.mjs";
import "./consent.mjs";
import "./screen.mjs";

const BUNDLE_MAX = 300 * 1024; // bytes of all that a browser may load, gzip
const PAINT_MAX_MS = 1000;
const SHOTS = process.env.SHOTS;

test("the bundle is small, and names no other place to load from", async () => {
  const folder = join(process.env.PAGE_DIR, "page");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".gz"));
  const sizes = await Promise.all(names.map(async (name) => (await readFile(join(folder, name))).length));
  figures["bundle, gzip"] = `${Math.round(sizes.reduce((a, b) => a + b, 0) / 1024)} KB in ${names.length} files`;
  check(sizes.reduce((a, b) => a + b, 0) <= BUNDLE_MAX, figures["bundle, gzip"]);
  const html = await readFile(join(process.env.PAGE_DIR, "index.html"), "utf8");
  equal([...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url).filter((url) => !/^page\/[\w.-]+$/.test(url)), [], "URLs");
  check(!/<script[^>]*>[^<]|\son\w+=|<style|\sstyle=/i.test(html), "inline code");
});

test("first paint on a cold cache with a processor six times slower", async (page, site) => {
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: 6 });
  await page.goto(site.url);
  const painted = await until(() => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime), "it is painted");
  figures["first contentful paint, processor 6 times slower"] = `${Math.round(painted)} ms`;
  check(painted < PAINT_MAX_MS * Number(process.env.SANDCGI_TEST_PATIENCE ?? 3), `${painted} ms`);
});

test("a first visit: a token, an example, Ctrl-Enter, three charts; a click shows one whole", async (page, site) => {
  await page.goto(site.url);
  await page.waitForSelector("#token:focus");
  await page.keyboard.type(site.token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#gate", { state: "hidden" });
  await page.selectOption("#examples", { label: "Three charts" });
  await page.keyboard.press("Control+Enter");
  equal((await ended(page)).slice(0, 8), "Finished", "the end");
  await until(async () => (await drawn(page)) === 3, "three charts");
  check(/\d+ (ms|s).* MB/.test(await page.textContent("#status")), "time and memory");
  await page.click("#shown .picture >> nth=0");
  await page.waitForSelector("dialog[open] .whole img");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  equal(await page.evaluate(() => [localStorage.length, JSON.stringify(sessionStorage).includes(document.querySelector("#token").value || "no token")]), [0, false], "kept");
});

test("below a path, under another name than the public one: a chart, an upload, a download", async (page, site) => {
  await enter(page, site);
  check((await run(page, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nopen('a.txt', 'w').write('text')")).startsWith("Finished"), "it finished");
  await until(async () => (await drawn(page)) === 1, "a chart");
  await page.setInputFiles("#picker", { name: "up.csv", mimeType: "text/csv", buffer: Buffer.from("a,b\n1,2\n") });
  await page.click("#tab-files");
  await page.waitForSelector("#tree >> text=up.csv");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#tree a[aria-label='Download a.txt']")]);
  equal(await readFile(await download.path(), "utf8"), "text", "the download");
}, { site: "below" });

test("a run that waits says which number it is, and runs when its turn comes", async (page, site) => {
  await enter(page, site);
  await call(site, "run_code", { conversationId: "other", language: "bash", code: "sleep 5", background: true });
  await write(page, "print('my turn')");
  await page.click("#run");
  await until(async () => /^Waiting: number 1 in the queue/.test(await page.textContent("#status")), "its number");
  equal((await ended(page)).slice(0, 8), "Finished", "the end");
  equal((await output(page)).trim(), "my turn", "output");
}, { site: "below" });

test("the page's files: a strict policy, types, and how long they may be kept", async (page, site) => {
  const html = await fetch(site.url);
  const policy = html.headers.get("Content-Security-Policy");
  for (const part of ["default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]) check(policy.includes(part), part);
  equal(["Cache-Control", "X-Content-Type-Options", "Referrer-Policy"].map((name) => html.headers.get(name)), ["no-cache", "nosniff", "no-referrer"], "headers of the page");
  const [, script] = (await html.text()).match(/src="(page\/main-[^"]+)"/);
  const answer = await fetch(site.url + script);
  equal(["Content-Type", "Cache-Control", "Content-Encoding"].map((name) => answer.headers.get(name)), ["text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "gzip"], "headers of a script");
  equal([(await fetch(`${site.url}page/none.js`)).status, (await fetch(site.url, { method: "POST" })).status, (await fetch(`${site.url}index.html`)).status], [404, 405, 404], "what is not there");
});

test("a wrong token is told, or one that has expired, and so is what to do; the right one is kept only if asked to", async (page, site) => {
  await page.goto(site.url);
  await page.fill("#token", "0".repeat(48));
  await page.press("#token", "Enter");
  await until(async () => /does not know this token.*sandcgi token add/.test(await page.textContent("#token-problem")), "the reason");
  await page.fill("#token", site.expired);
  await page.press("#token", "Enter");
  await until(async () => /has expired.*sandcgi token add/.test(await page.textContent("#token-problem")), "another reason");
  await page.fill("#token", site.token);
  await page.check("#token-keep");
  await page.press("#token", "Enter");
  await page.waitForSelector("#gate", { state: "hidden" });
  await page.reload();
  await page.waitForSelector("#languages input");
  check(await page.isHidden("#gate"), "not asked again");
  await page.click("#leave");
  await page.waitForSelector("#token:focus");
  equal(await page.evaluate(() => localStorage.length), 0, "what is kept after it was forgotten");
});

test("a sign-in link opens the page; its token leaves the address and the history, and is not kept", async (page, site) => {
  await page.goto(`${site.url}#token=${encodeURIComponent(site.token)}&c=linked`);
  await page.waitForSelector("#languages input");
  check(await page.isHidden("#gate"), "not asked");
  check(!(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).includes(site.token), "the token is kept");
  equal(new URL(page.url()).hash, "#c=linked");
  await page.reload();
  await page.waitForSelector("#token:focus");
  await page.evaluate((token) => { location.hash = `token=${token}`; }, site.token);
  await page.waitForSelector("#gate", { state: "hidden" });
  check(!page.url().includes("token"), page.url());
  await page.goto(`${site.url}?again#token=${"0".repeat(48)}`);
  await until(async () => /does not know this token/.test(await page.textContent("#token-problem")), "a wrong one is told");
  check(!page.url().includes("token"), page.url());
});

test("output comes while it is printed, stderr told apart, colours and carriage returns as a terminal has them; cancel ends it", async (page, site) => {
  await enter(page, site);
  await write(page, `import sys, time
print("\\x1b[31mred\\x1b[0m plain")
sys.stdout.flush()
time.sleep(0.3)
print("oops", file=sys.stderr)
time.sleep(0.3)
for n in range(600):
    print(f"\\rstep {n}", end="", flush=True)
    time.sleep(0.1)
`);
  await page.click("#run");
  await until(async () => /step \d\d/.test(await output(page)), "live output");
  check(await page.isVisible("#cancel"), "it runs");
  equal(await page.textContent("#output .f1"), "red", "the colour");
  equal(await page.textContent("#output .err"), "oops", "stderr");
  const steps = await output(page);
  check(/^red plain\noops\nstep \d+$/.test(steps), `steps follow in place: ${JSON.stringify(steps)}`);
  await page.click("#cancel");
  equal((await ended(page)).slice(0, 9), "Cancelled", "the end");
  const { runs } = await call(site, "list_runs", { conversationId: await conversation(page) });
  equal(runs.filter(({ status }) => status === "running"), [], "going on");
});

test("cancel in a run's first moment closes the stream, which ends it", async (page, site) => {
  await enter(page, site);
  await write(page, "import time\nprint('begun', flush=True)\ntime.sleep(60)\n");
  await page.click("#run");
  await page.waitForSelector("#cancel:visible");
  await page.click("#cancel");
  equal((await ended(page)).slice(0, 9), "Cancelled", "the end");
  const id = await conversation(page);
  await until(async () => (await call(site, "list_runs", { conversationId: id })).runs.every(({ status }) => status !== "running"), "nothing goes on");
});

test("a reload in mid-run finds the run, with all of its output", async (page, site) => {
  await enter(page, site, { keep: true });
  await write(page, "import time\nfor n in range(8):\n    print('line', n, flush=True)\n    time.sleep(0.6)\n");
  await page.click("#run");
  await until(async () => (await output(page)).includes("line 2"), "it has begun");
  await page.reload();
  await until(async () => (await output(page)).includes("line 3"), "it goes on");
  equal((await ended(page)).slice(0, 8), "Finished", "the end");
  equal((await output(page)).trim().split("\n").length, 8, "lines");
  await page.click("#tab-history");
  check((await page.textContent("#history")).includes("ok"), "the history has its end");
});

test("files: an upload becomes a chart; a drop, a folder, rename, delete, an archive; a link opens the same files", async (page, site) => {
  await enter(page, site);
  await page.click("#tab-files");
  await page.evaluate(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["month,sales\nJan,10\nFeb,14\nMar,9\n"], "sales.csv", { type: "text/csv" }));
    dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  });
  await page.waitForSelector("#tree >> text=sales.csv");
  check((await run(page, "import os, pandas as pd\npd.read_csv('sales.csv').plot.bar(x='month').figure.savefig('chart.png')\nos.makedirs('in/deep')\nopen('in/deep/x.md', 'w').write('# Title\\n\\n- one\\n')"))
    .startsWith("Finished"), "it finished");
  await until(async () => (await drawn(page)) === 1, "a chart");
  await page.click("#tab-files");
  await page.click("#tree summary:has-text('sales.csv')");
  equal(await page.textContent("#tree tbody tr >> nth=1"), "Feb14", "the table");
  await page.click("#tree summary:has-text('in')");
  await page.click("#tree summary:has-text('deep')");
  await page.click("#tree summary:has-text('x.md')");
  equal(await page.textContent("#tree .markdown h3"), "Title", "the markdown");
  await page.click("#tree button[aria-label='Rename sales.csv']");
  await page.fill("#ask-input", "old/sales.csv");
  await page.keyboard.press("Enter");
  await page.click("#tree summary:has-text('old')");
  await page.click("#tree button[aria-label='Delete old/sales.csv']");
  await page.click("dialog .danger");
  await page.waitForSelector("#tree button[aria-label='Delete old/sales.csv']", { state: "detached" });
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#files-tools button:has-text('Download all')")]);
  equal((await readFile(await download.path())).subarray(0, 2).toString(), "PK", "the archive");
  const other = await page.context().browser().newContext();
  const second = await other.newPage();
  await enter(second, site, { fragment: `#c=${await conversation(page)}` });
  await second.click("#tab-files");
  await second.waitForSelector("#tree >> text=chart.png");
  await other.close();
});

test("sessions keep variables; arguments, input, environment and the time limit reach the program", async (page, site) => {
  await enter(page, site);
  await page.check("#session", { force: true });
  await run(page, "kept = 40");
  await run(page, "print(kept + 2)");
  equal((await output(page)).trim(), "42", "the variable");
  await page.uncheck("#session", { force: true });
  await page.click("#options > summary");
  await page.fill("#args", "one\ntwo words");
  await page.fill("#stdin", "typed");
  await page.fill("#limit", "2");
  await page.click("#add-variable");
  await page.keyboard.type("COLOUR");
  await page.keyboard.press("Tab");
  await page.keyboard.type("blue");
  check((await run(page, "import os, sys, time\nprint(sys.argv[1:], sys.stdin.read(), os.environ['COLOUR'], flush=True)\ntime.sleep(30)")).startsWith("Stopped at its time limit"), "the limit");
  equal((await output(page)).trim(), "['one', 'two words'] typed blue", "what it got");
  check(!(await page.evaluate(() => sessionStorage.getItem("sandcgi-tab"))).includes("blue"), "values of the environment are not kept");
  await page.click("#tab-history");
  equal(await page.locator("#history > li").count(), 3, "runs");
});

test("a server away, a rate limit and a full queue: each says what to do, and the page goes on by itself", async (page, site) => {
  await enter(page, site);
  await page.context().setOffline(true);
  await page.click("#run");
  await until(async () => /cannot be reached/.test(await page.textContent("#banner")) && /start\.sh --status/.test(await page.textContent("#notes")), "what to do");
  await page.context().setOffline(false);
  await page.waitForSelector("#banner", { state: "hidden" });
  await page.click("#notes >> text=Try again");
  equal((await ended(page)).slice(0, 8), "Finished", "the end");
  await page.route("**/mcp/api", (route) => route.fulfill({ status: 429, headers: { "Retry-After": "0.1" }, body: "{}" }));
  await page.click("#run");
  await until(async () => /Wait a few seconds/.test(await page.textContent("#notes")), "the rate limit");
  await page.unroute("**/mcp/api");
  const busy = { jsonrpc: "2.0", id: 1, result: { isError: true, content: [{ type: "text", text: "busy" }], structuredContent: { status: "busy", retryAfterMs: 4000, position: 7 } } };
  await page.route("**/mcp/api", (route) => route.fulfill({ json: busy }));
  await page.click("#run");
  await until(async () => /7 runs wait\. A place is likely in 4/.test(await page.textContent("#notes")), "the queue");
  await page.unroute("**/mcp/api");
});

test("nothing that a program prints or names runs, opens, or leaves the page", async (page, site) => {
  await enter(page, site);
  await page.evaluate(() => { globalThis.pwned = 0; });
  await run(page, hostileFiles + hostileOutput);
  await page.waitForSelector("#made-list li");
  check((await page.locator("#made-list li").count()) >= 10, "the files are listed");
  for (const summary of await page.locator("#made-list summary").all()) await summary.click();
  await page.click("#output-tools button[aria-label='Read the output as Markdown']");
  await page.waitForSelector("dialog .markdown");
  await page.waitForTimeout(700);
  const odd = await page.evaluate(() => [globalThis.pwned, document.querySelectorAll("script:not([type=module]), iframe, object, embed, style, form:not(#token-form), #right svg:not(.icon), [onerror], [onload]").length,
    [...document.querySelectorAll("a[href]")].filter((a) => !/^https?:$/.test(a.protocol)).length, document.querySelectorAll("img:not([src^='blob:']):not([alt])").length, document.title]);
  equal(odd, [0, 0, 0, 0, "sandcgi"], "[scripts run, active elements, odd links, foreign pictures, title]");
  check((await output(page)).includes("<script>"), "what is printed is shown");
  await page.keyboard.press("Escape");
  await page.click("#tab-files");
  await page.waitForSelector("#tree li");
  for (const summary of await page.locator("#tree > li > details > summary").all()) await summary.click();
  await page.waitForTimeout(500);
  equal(await page.evaluate(() => globalThis.pwned), 0, "scripts run");
});

test("100,000 lines do not freeze it; all of them can be saved", async (page, site) => {
  await enter(page, site);
  await page.evaluate(() => {
    globalThis.longest = 0;
    let last = performance.now();
    const tick = () => { const now = performance.now(); globalThis.longest = Math.max(globalThis.longest, now - last); last = now; setTimeout(tick, 10); };
    tick();
  });
  const status = await run(page, "import time\nfor n in range(100_000):\n    print('line', n, flush=n % 4000 == 0)\n    if n % 4000 == 0: time.sleep(0.1)", "python", 120);
  check(status.startsWith("Finished"), status);
  await until(async () => (await output(page)).includes("line 99999\n"), "the last line");
  const shown = await output(page);
  const lines = shown.split("\n").length;
  check(lines >= (shown.includes("came too fast to be shown here") ? 50_000 : 100_000), `${lines} lines`); // a busy machine leaves gaps, told
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  figures["heap after 100,000 lines"] = `${Math.round(usedSize / 1048576)} MB`;
  figures["longest pause with 100,000 lines"] = `${Math.round(await page.evaluate(() => globalThis.longest))} ms`;
  check(usedSize < 120 << 20, figures["heap after 100,000 lines"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#output-tools button[aria-label='Save all output as a file']")]);
  equal((await readFile(await download.path(), "utf8")).split("\n").length, 100_001, "lines of the file");
});

test("by keyboard alone: token, editor and out of it, run, tabs, a dialog and back", async (page, site) => {
  await page.goto(site.url);
  await page.keyboard.type(site.token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#gate", { state: "hidden" });
  await until(() => page.evaluate(() => document.activeElement.id === "editor"), "the editor has the focus");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("print('typed')");
  await page.keyboard.press("Escape");
  await until(() => page.evaluate(() => document.activeElement.id === "run" || document.activeElement.closest("#options") !== null || document.activeElement.tagName === "SUMMARY"), "out of the editor");
  for (let i = 0; i < 12 && (await page.evaluate(() => document.activeElement.id)) !== "run"; i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await ended(page);
  equal((await output(page)).trim(), "typed", "output");
  for (let i = 0; i < 6 && (await page.evaluate(() => document.activeElement.id)) !== "tab-result"; i++) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  check(await page.isVisible("#history-panel"), "the arrows choose a view");
  await page.focus("#elsewhere");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  equal(await page.evaluate(() => document.activeElement.id), "elsewhere", "the focus is back");
});

test("copy as: where the server has a login, hosted assistants get its URL alone", async (page, site) => {
  await enter(page, site);
  await page.click("#elsewhere");
  await page.check("dialog label:has-text('ChatGPT') input", { force: true });
  await page.check("dialog .check input");
  const text = await page.textContent("dialog .copied");
  check(text.includes(`${site.url}mcp`) && text.includes("OAuth") && !text.includes(site.token), text);
  await page.screenshot({ path: join(SHOTS, "copy-as-login.png") });
}, { site: "oauth" });

test("copy as: each client's text has this server's URL, and the token only if asked to", async (page, site) => {
  await enter(page, site);
  await page.click("#elsewhere");
  for (const name of ["Claude Code", "Claude Desktop", "VS Code", "n8n"]) {
    await page.check(`dialog label:has-text("${name}") input`, { force: true });
    const text = await page.textContent("dialog .copied");
    check(text.includes(`${site.url}mcp`) && !text.includes(site.token), `${name}: ${text}`);
  }
  equal(await page.locator("dialog label:has-text('ChatGPT')").count(), 0, "those that ask for a login");
  await page.check("dialog label:has-text('curl') input", { force: true });
  await page.check("dialog .check input");
  check((await page.textContent("dialog .copied")).includes(site.token), "the token");
  await page.click("dialog .primary");
  check((await page.evaluate(() => navigator.clipboard.readText())).startsWith("curl"), "the clipboard");
});

/** What axe finds in the page as it is; in the dark only colours differ. */
async function examine(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, {
    resultTypes: ["violations"], ...(matchMedia("(prefers-color-scheme: dark)").matches ? { runOnly: ["color-contrast"] } : {}),
  }));
  equal(found.violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))]), [], where);
}
const axe = await readFile(axeSource, "utf8");

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing, ${colorScheme}; screenshots of each width`, async (page, site) => {
    await page.goto(site.url);
    await page.waitForSelector("#token:focus");
    await examine(page, "the token");
    await page.screenshot({ path: `${SHOTS}/token-${colorScheme}.png` });
    await enter(page, site);
    await examine(page, "before the first run");
    await page.screenshot({ path: `${SHOTS}/empty-${colorScheme}.png` });
    await page.click("#options > summary");
    await page.click("#add-variable");
    await examine(page, "options");
    await page.screenshot({ path: `${SHOTS}/options-${colorScheme}.png` });
    await page.click("#options > summary");
    await page.selectOption("#examples", { label: "Analyse a CSV" });
    await page.click("#run");
    await ended(page);
    await page.waitForSelector("#shown table");
    await examine(page, "a table");
    await page.screenshot({ path: `${SHOTS}/table-${colorScheme}.png` });
    await run(page, "import sys\nprint('\\x1b[1mbold\\x1b[0m', *(f'\\x1b[{n}mcolour {n}\\x1b[0m' for n in [*range(30, 38), *range(90, 98)]))\nprint('warning', file=sys.stderr)\nraise SystemExit(3)");
    await examine(page, "a failure");
    await page.screenshot({ path: `${SHOTS}/failed-${colorScheme}.png` });
    await page.selectOption("#examples", { label: "Three charts" });
    await page.click("#run");
    await ended(page);
    await until(async () => (await drawn(page)) === 3, "three charts");
    await examine(page, "pictures");
    for (const width of [380, 900, 1440]) {
      await page.setViewportSize({ width, height: width === 380 ? 780 : 900 });
      await page.screenshot({ path: `${SHOTS}/page-${width}-${colorScheme}.png`, fullPage: width === 380 });
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing is wider than ${width}`);
    }
    for (const panel of ["files", "history"]) {
      await page.click(`#tab-${panel}`);
      await page.waitForTimeout(300);
      await examine(page, panel);
      await page.screenshot({ path: `${SHOTS}/${panel}-${colorScheme}.png` });
    }
    await page.click("#elsewhere");
    await examine(page, "copy as");
    await page.screenshot({ path: `${SHOTS}/copy-${colorScheme}.png` });
  }, { colorScheme });
}

await runTests();

// Tests in a browser: one function is one test, its name a sentence; each has a context of its own, and ends with what no test may see.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.BROWSER_FOLDER, "here.js"));
const { chromium } = require("playwright-core");
export const axeSource = require.resolve("axe-core/axe.min.js");
export const sites = JSON.parse(process.env.SITES);

const tests = [];
export const figures = {};

/** quiet: errors in the console that a test provokes. */
export function test(sentence, run, { site = "plain", quiet, ...context } = {}) {
  tests.push({ sentence, run, site: sites[site], quiet, context });
}

export function check(condition, text) {
  if (!condition) throw new Error(text);
}

export function equal(got, want, what = "value") {
  check(JSON.stringify(got) === JSON.stringify(want), `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

/** Waits until f returns something true. */
export async function until(f, what, seconds = 20) {
  const limit = Date.now() + 1000 * seconds;
  for (;;) {
    const value = await f();
    if (value) return value;
    check(Date.now() < limit, `after ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What a page must never do: run foreign scripts, break its policy, call another place, open windows. */
async function watch(context, site, quiet) {
  const seen = [];
  const own = new URL(site.url);
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.port && url.port === site.elsewhere?.split(":").at(-1)) return; // where a test wants to go
    if (url.protocol === "blob:" ? url.origin !== own.origin : url.host !== own.host || !url.pathname.startsWith(own.pathname)) seen.push(`a request to ${request.url()}`);
  });
  context.on("page", (page) => {
    if (context.pages().length > 1) seen.push("another window");
    page.on("pageerror", (error) => seen.push(`an error: ${error.stack}`));
    page.on("dialog", (dialog) => { seen.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("console", (message) => message.type() === "error" && !quiet?.test(message.text()) && !/Failed to load resource|net::ERR/.test(message.text()) && seen.push(`in the console: ${message.text()}`));
  });
  await context.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
  });
  return seen;
}

async function one(browser, { run, site, quiet, context: options }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, permissions: ["clipboard-read", "clipboard-write"], ...options });
  context.setDefaultTimeout(20_000);
  const seen = await watch(context, site, quiet);
  try {
    const page = await context.newPage();
    await run(page, site);
    seen.push(...(await page.evaluate(() => globalThis.violations)).map((text) => `its policy forbade ${text}`));
    equal(seen, [], "seen besides");
  } finally {
    await context.close();
  }
}

function tell(word, { sentence }, began, problem) {
  console.log(`${word} ${sentence} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  if (problem) console.log(problem.stack.replace(/^/gm, "    "));
}

export async function runTests() {
  const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : "";
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const counts = { ok: 0, FAILED: 0 };
  let second = 3; // attempts of tests that a busy machine has failed
  for (const each of tests.filter(({ sentence }) => sentence.includes(only))) {
    const began = Date.now();
    let problem = await one(browser, each).then(() => null, (error) => error);
    if (problem && second-- > 0) {
      tell("unsteady", each, began, problem);
      problem = await one(browser, each).then(() => null, (error) => error);
    }
    counts[problem ? "FAILED" : "ok"]++;
    tell(problem ? "FAILED" : "ok", each, began, problem);
  }
  await browser.close();
  for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
  console.log(`${counts.ok} passed, ${counts.FAILED} failed, 0 skipped`);
  process.exitCode = counts.FAILED ? 1 : 0;
}

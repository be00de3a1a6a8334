// What a person does on the page.
import { check, until } from "./browser.mjs";

export async function enter(page, site, { keep = false, fragment = "" } = {}) {
  await page.goto(site.url + fragment);
  await page.fill("#token", site.token);
  if (keep) await page.check("#token-keep");
  await page.press("#token", "Enter");
  await page.waitForSelector("#gate", { state: "hidden" });
  await page.waitForFunction(() => document.querySelector("#limit").max);
}

export async function write(page, code, language = "python") {
  await page.check(`#languages input[value=${language}]`, { force: true });
  await page.click("#editor .cm-line >> nth=0", { position: { x: 30, y: 8 } });
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(code);
}

/** Waits until the run has ended; returns the words of its status. */
export async function ended(page, seconds = 60) {
  await until(() => page.evaluate(() => ["good", "bad", "quiet"].includes(document.querySelector("#status").dataset.kind) && document.querySelector("#run").checkVisibility()), "the run ends", seconds);
  return page.textContent("#status");
}

export async function run(page, code, language, seconds) {
  await write(page, code, language);
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#result-body:not([hidden])");
  return ended(page, seconds);
}

/** Behind the next frame, in which it is drawn. */
export const output = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve(document.querySelector("#output").textContent))));

/** Pictures below the output that have been drawn. */
export const drawn = (page, where = "#shown") => page.evaluate((selector) => [...document.querySelectorAll(`${selector} img`)].filter((image) => image.naturalWidth > 0).length, where);

/** Calls a tool as another client would. */
export async function call(site, name, args) {
  const answer = await fetch(`${site.url}mcp/api`, {
    method: "POST", headers: { Authorization: `Bearer ${site.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const { result } = await answer.json();
  check(result, `${name} is answered`);
  return result.structuredContent;
}

export const conversation = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("c"));

// The page that asks the operator whether a client may have access (SANDCGI_OAUTH=builtin). page.mjs imports it.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import { axeSource, check, equal, test } from "./browser.mjs";

const SHOTS = process.env.SHOTS;
const verifier = randomBytes(48).toString("base64url");

async function post(url, body) {
  const answer = await fetch(url, { method: "POST", body });
  equal(answer.ok, true, `${url}: ${answer.status}`);
  return answer.json();
}

/** The address of the page for a client of that name, whose callback sends the browser on to another place, as some do. */
async function pageFor(site, name) {
  const redirect = `${site.elsewhere}/callback`;
  const answer = await fetch(new URL("oauth/register", site.url), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ client_name: name, redirect_uris: [redirect] }) });
  const { client_id: id } = await answer.json();
  const query = new URLSearchParams({
    response_type: "code", client_id: id, redirect_uri: redirect, code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
    state: "a state", scope: "run files network",
  });
  return { id, redirect, url: `${new URL("oauth/authorize", site.url)}?${query}` };
}

/** The client's own web server: notes what it gets. */
async function withCallback(site, work) {
  const got = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, site.elsewhere);
    if (url.pathname === "/callback") {
      got.push(Object.fromEntries(url.searchParams));
      response.writeHead(302, { location: site.elsewhere.replace("127.0.0.1", "localhost") + "/done" });
    }
    response.end("<!doctype html><title>The client</title><p>done");
  });
  await new Promise((resolve) => server.listen(Number(new URL(site.elsewhere).port), resolve));
  try {
    await work(got);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test("consent: a client asks, a wrong passphrase is said to be wrong, the right one leads back, through a redirect to another origin, with a code that counts", async (page, site) => {
  await withCallback(site, async (got) => {
    const client = await pageFor(site, "Claude");
    await page.goto(client.url);
    equal(await page.textContent("h1"), "Claude wants to use this server", "the heading");
    check((await page.textContent("dl")).includes("a program on this computer (127.0.0.1:"), "where answers go");
    equal(await page.locator("main ul li").count(), 3, "what it may do");
    await page.waitForSelector("#passphrase:focus");
    await page.keyboard.type("not the passphrase");
    await page.keyboard.press("Enter");
    equal(await page.textContent(".problem"), "The passphrase is wrong.", "the problem");
    await page.screenshot({ path: join(SHOTS, "consent-wrong.png") });
    await page.fill("#passphrase", site.passphrase);
    await page.click("button[value=allow]");
    await page.waitForURL(/\/done$/);
    equal([got.length, got[0].state, got[0].iss], [1, "a state", site.url.replace(/\/$/, "")], "what the client gets");
    const tokens = await post(new URL("oauth/token", site.url), new URLSearchParams({ grant_type: "authorization_code", code: got[0].code, client_id: client.id, redirect_uri: client.redirect, code_verifier: verifier }));
    equal(tokens.scope, "run files network", "the scopes");
  });
}, { site: "oauth" });

test("consent: denied, the client is told so", async (page, site) => {
  await withCallback(site, async (got) => {
    await page.goto((await pageFor(site, "A client")).url);
    await page.click("button[value=deny]");
    await page.waitForURL(/\/done$/);
    equal([got[0].error, got[0].code], ["access_denied", undefined], "what the client gets");
  });
}, { site: "oauth" });

for (const theme of ["light", "dark"])
  test(`consent: readable without a mouse, in ${theme} colours, wide and narrow, whatever the client calls itself`, async (page, site) => {
    const { url } = await pageFor(site, theme === "light" ? "Claude" : `<b>A client</b> \u202Ewith ${"long".repeat(15)} name`);
    await page.goto(url);
    await page.screenshot({ path: join(SHOTS, `consent-${theme}.png`) });
    equal(await page.evaluate(() => [document.scripts.length, document.querySelectorAll("main b").length]), [0, 0], "markup of the client's");
    await page.setViewportSize({ width: 360, height: 740 });
    await page.screenshot({ path: join(SHOTS, `consent-${theme}-narrow.png`), fullPage: true });
    equal(await page.evaluate(() => document.documentElement.scrollWidth <= 360), true, "it fits");
    const reached = [];
    await page.focus("#tenant");
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.value));
    }
    equal(reached, ["passphrase", "allow", "deny"], "the order of keys");
  }, { site: "oauth", colorScheme: theme });

test("consent: axe finds nothing to complain about", async (page, site) => {
  await page.goto((await pageFor(site, "Claude")).url);
  const html = await page.content(); // its policy lets no script in
  await page.goto("about:blank");
  await page.setContent(html);
  await page.addScriptTag({ path: axeSource });
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  equal(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`), [], "violations");
}, { site: "oauth" });

test("consent: no other page may frame it", async (page, site) => {
  const { url } = await pageFor(site, "Claude");
  await page.goto("about:blank");
  await page.setContent(`<iframe src="${url.replaceAll("&", "&amp;")}"></iframe>`);
  await page.waitForTimeout(500);
  const [, frame] = page.frames();
  equal(await frame.evaluate(() => document.querySelectorAll("form").length).catch(() => 0), 0, "forms in the frame");
}, { site: "oauth", quiet: /Refused to frame|frame-ancestors|X-Frame-Options/ });

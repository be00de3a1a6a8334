// The page: what its parts have to do with one another.
import { openCopyAs } from "./copy-as.js";
import { announce, byId, copy, fill, h, openDialog } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { FilesView } from "./files.js";
import { HistoryView } from "./history.js";
import { conversation, keepTab, keepTheme, keptTheme, linkedToken, setConversation, tab } from "./keep.js";
import { callTool, hasToken, healthy, listTools, onLost } from "./mcp.js";
import { Options } from "./options.js";
import { ResultView } from "./result.js";
import { Run } from "./run.js";
import { Tabs } from "./tabs.js";
import { askToken, enter, leave, signIn } from "./token.js";
import { dropped } from "./upload.js";

const ORDER = ["python", "typescript", "bash"]; // others behind these
const AWAY_MS = 2500; // between two looks at a server that is away

const state = tab();
const linked = linkedToken(); // before the conversation, which is in the fragment, too
const page = { conversation: conversation(), language: state.language ?? "python", run: null, runners: [] };

let editor; // loaded when the page has been painted
const painted = new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
const editorLoads = painted.then(() => import("./editor.js")).then(({ Editor }) => { editor = new Editor(byId("editor"), { onRun: () => start(), onChange: () => keepText() }); });
const options = new Options({ conversation: () => page.conversation, fail });
const tabs = new Tabs(byId("tabs"), (panel) => panel === "files-panel" && hasToken() && files.load());
const result = new ResultView({ retry: () => start(), showToken: () => lostToken("") });
const files = new FilesView({ conversation: () => page.conversation, fail });
const past = new HistoryView(state.history, { show: (entry) => show(past.runs.get(entry.key)), edit, again: (entry) => { edit(entry); start(); }, changed: keep });

// ---- languages and examples ----

function setRunners(runners) {
  const place = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  page.runners = runners.sort((a, b) => place(a.language) - place(b.language));
  if (!runners.some(({ language }) => language === page.language)) page.language = runners[0]?.language ?? page.language;
  fill(byId("languages"), ...page.runners.map(({ language, version }) => h("label", { title: version },
    h("input", { type: "radio", name: "language", value: language, checked: language === page.language }), h("span", {}, titleOf(language)))));
  chooseLanguage(page.language, state.texts[page.language] ?? EXAMPLES[page.language]?.[0][1] ?? "");
}

const titleOf = (language) => ({ python: "Python", typescript: "TypeScript", bash: "Bash" })[language] ?? language;

function chooseLanguage(language, text) {
  page.language = state.language = language;
  for (const input of byId("languages").querySelectorAll("input")) input.checked = input.value === language;
  editor.open(text, language);
  options.setLanguage(language);
  const runner = page.runners.find((one) => one.language === language);
  byId("libraries").textContent = runner ? `${runner.version.replace(/^[A-Za-z]/, (first) => first.toUpperCase())} · ${runner.libraries.length} libraries` : "";
  fill(byId("examples"), h("option", { value: "" }, "Examples"), ...(EXAMPLES[language] ?? []).map(([name], i) => h("option", { value: String(i) }, name)));
  byId("examples").disabled = !EXAMPLES[language];
  keepText();
}

function showLibraries() {
  const runner = page.runners.find((one) => one.language === page.language);
  openDialog(`${titleOf(page.language)} ${runner.version}`, h("p", { class: "quiet" }, `What programs can import, in the image ${runner.image}.`),
    h("ul", { class: "libraries" }, runner.libraries.map(({ name, version }) => h("li", {}, h("span", {}, name), h("span", { class: "size" }, version)))));
}

function useExample() {
  const [, code, needs] = EXAMPLES[page.language][Number(byId("examples").value)];
  chooseLanguage(page.language, code);
  if (needs?.network) options.values = { ...options.values, network: true };
  editor.focus();
}

// ---- what this tab keeps ----

function keepText() {
  state.texts[page.language] = editor.text;
  clearTimeout(page.keeping);
  page.keeping = setTimeout(keep, 500);
}

function keep() {
  keepTab(state);
}

// ---- runs ----

function start() {
  if (page.run && !page.run.isOver) return;
  const problem = !editor.text.trim() ? "There is no program yet: write one, or choose an example." : options.problem();
  if (problem) return warn(problem);
  const { values } = options;
  const run = new Run({ language: page.language, code: editor.text, conversation: page.conversation, ...values });
  follow(run, past.add(run, { ...values, environment: {} })); // values of variables may be secret: they are not kept
}

function follow(run, entry) {
  page.run = run;
  warn("");
  run.watch({ onChange: () => {
    drawRunning();
    state.running = run.runId && !run.isOver ? { runId: run.runId, language: run.order.language, code: run.order.code, conversation: run.order.conversation, at: run.startedAt } : undefined;
    keep();
    if (!run.isOver) return;
    if (entry) past.end(entry, run);
    if (run.result?.files?.length || byId("files-panel").hidden === false) files.load();
  } });
  show(run);
  drawRunning();
  announce("Started");
  run.begin();
}

/** A run that goes on since before the page was loaded: this tab's, or another of the conversation. */
async function findRunning() {
  const kept = state.running?.conversation === page.conversation ? state.running : null;
  let found = kept;
  if (!found) {
    const { data } = await callTool("list_runs", { conversationId: page.conversation });
    const going = data.runs.find((run) => run.status === "running");
    found = going && { runId: going.runId, language: going.language, code: "", at: 1000 * going.createdAt };
  }
  if (!found) return;
  const run = new Run({ conversation: page.conversation, ...found });
  run.startedAt = found.at;
  const entry = past.entries.find((one) => one.at === found.at);
  if (entry) past.runs.set(entry.key, run);
  follow(run, entry);
}

function show(run) {
  result.show(run);
  tabs.choose("result-panel");
}

function drawRunning() {
  const going = Boolean(page.run) && !page.run.isOver;
  byId("run").hidden = going;
  byId("cancel").hidden = !going;
  document.title = going ? "Running… · sandcgi" : "sandcgi";
}

function edit(entry) {
  chooseLanguage(entry.language, entry.code);
  options.values = past.runs.get(entry.key)?.order ?? entry.options ?? {};
  editor.focus();
}

async function cancel() {
  byId("cancel").disabled = true;
  try {
    await page.run.cancel();
  } catch (problem) {
    fail(problem);
  } finally {
    byId("cancel").disabled = false;
    byId("run").focus();
  }
}

// ---- what went wrong ----

/** A line above Run; "": none. */
function warn(text) {
  byId("warning").textContent = text;
}

/** A call that is no run's went wrong. */
function fail(problem) {
  if (problem.kind !== "cancelled" && problem.kind !== "token") banner(problem.message);
}

function banner(text) {
  byId("banner").hidden = !text;
  byId("banner-text").textContent = text;
}

async function lostToken(message) {
  if (!byId("gate").hidden) return;
  setRunners(await askToken(message));
}

/** Resolves when the server is back. */
function waitForServer() {
  page.away ??= lookForServer().finally(() => { page.away = null; });
  return page.away;
}

async function lookForServer() {
  banner("The server cannot be reached. This page tries again by itself; what you wrote is kept.");
  do await new Promise((resolve) => setTimeout(resolve, AWAY_MS)); while (!(await healthy()));
  banner("");
  announce("The server is back");
}

onLost((error) => (error.kind === "token" ? lostToken(error.message) : byId("gate").hidden && waitForServer()));

// ---- the rest of the page ----

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark" || (!theme && matchMedia("(prefers-color-scheme: dark)").matches)));
}

function otherTheme() {
  const dark = byId("theme").getAttribute("aria-pressed") === "true";
  keepTheme(dark ? "light" : "dark");
  setTheme(dark ? "light" : "dark");
}

function goTo(id) {
  page.conversation = id;
  files.rows = null;
  files.open.clear();
  result.show(null);
  files.load();
  if (!state.running) byId("editor").scrollIntoView?.({ block: "nearest" });
}

function newConversation() {
  setConversation("");
  history.replaceState(null, "", location.pathname + location.search);
  goTo(conversation());
  announce("A new conversation, without files");
}

async function copyLink() {
  await copy(location.href);
  byId("share").querySelector("span").textContent = "Copied";
  setTimeout(() => { byId("share").querySelector("span").textContent = "Copy link"; }, 1500);
}

function wireDrop() {
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (on) => document.body.classList.toggle("dropping", on);
  addEventListener("dragenter", (event) => hasFiles(event) && over(++depth > 0));
  addEventListener("dragleave", (event) => hasFiles(event) && over(--depth > 0));
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    if (!hasToken()) return;
    const found = await dropped(event.dataTransfer);
    tabs.choose("files-panel");
    await files.upload(found);
  });
}

function wire() {
  byId("run").addEventListener("click", () => start());
  byId("cancel").addEventListener("click", () => cancel());
  byId("languages").addEventListener("change", (event) => chooseLanguage(event.target.value, state.texts[event.target.value] ?? EXAMPLES[event.target.value]?.[0][1] ?? ""));
  byId("examples").addEventListener("change", () => byId("examples").value && useExample());
  byId("libraries").addEventListener("click", () => showLibraries());
  byId("theme").addEventListener("click", () => otherTheme());
  byId("leave").addEventListener("click", () => leave());
  byId("new").addEventListener("click", () => newConversation());
  byId("share").addEventListener("click", () => copyLink());
  byId("elsewhere").addEventListener("click", () => {
    const args = new Run({ language: page.language, code: editor.text, conversation: page.conversation, ...options.values }).args();
    delete args.waitMs;
    openCopyAs(args);
  });
  byId("banner-close").addEventListener("click", () => banner(""));
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented && byId("gate").hidden && !document.querySelector("dialog[open]")) start();
  });
  addEventListener("hashchange", () => {
    const token = linkedToken();
    if (token && !byId("gate").hidden) signIn(token);
    goTo(conversation());
  });
  addEventListener("pagehide", () => keep());
  wireDrop();
}

async function begin() {
  setTheme(keptTheme());
  wire();
  tabs.choose("result-panel");
  result.show(null);
  document.documentElement.dataset.ready = "";
  const [runners] = await Promise.all([enter(linked, waitForServer), editorLoads]);
  setRunners(runners);
  const [tools] = await Promise.all([listTools(), findRunning().catch(fail), files.load()]);
  options.offer(tools.find((tool) => tool.name === "run_code"));
  if (matchMedia("(pointer: fine)").matches && document.activeElement === document.body) editor.focus();
}

begin().catch(fail);

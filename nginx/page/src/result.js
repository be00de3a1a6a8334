// The result of a run: how it stands, what it printed, its pictures and files.
import { announce, button, byId, copy, fill, h, icon, openDialog, saveAs } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { isPicture } from "./picture.js";
import { ownUrl } from "./place.js";
import { canShow, isTable, preview } from "./preview.js";
import { ScreenView } from "./screen-view.js";

const SHOWN = 8; // pictures and tables below the output; more wait for a click
const SAID_MS = 2000; // between two readings of new output
const SAID_MAX = 300; // characters

const ENDINGS = {
  ok: ["good", "Finished"], error: ["bad", "Failed"], timeout: ["bad", "Stopped at its time limit"], out_of_memory: ["bad", "Out of memory"],
  output_limit: ["bad", "Printed too much"], disk_limit: ["bad", "Its files took too much room"], killed: ["bad", "Killed"], cancelled: ["quiet", "Cancelled"],
  lost: ["bad", "Lost"],
};

const ADVICE = {
  timeout: "Give it a longer time limit below the editor.",
  out_of_memory: "Read large files in pieces, or keep less of them in memory.",
  disk_limit: "What was too much has been removed. Write less, or delete files.",
  output_limit: "Write to a file instead of printing.",
  lost: "The server does not know its outcome. Run it again.",
};

/** actions: retry(), showToken(). */
export class ResultView {
  constructor(actions) {
    this.actions = actions;
    this.status = byId("status");
    this.screen = new ScreenView(byId("output"));
    this.said = { at: 0, text: "" };
    setInterval(() => this.run && !this.run.isOver && this.#drawStatus(), 250);
  }

  show(run) {
    this.unwatch?.();
    this.run = run;
    this.screen.show(run?.screen ?? null);
    byId("empty").hidden = Boolean(run);
    byId("result-body").hidden = !run;
    if (!run) return fill(this.status);
    this.unwatch = run.watch({ onChange: () => this.draw(), onOutput: (text) => this.#onOutput(text) });
    return this.draw();
  }

  draw() {
    this.#drawStatus();
    this.#drawOutput();
    this.#drawFiles();
    if (this.run.isOver) announce(`${this.#words()[1]}. ${this.run.result?.files?.length ? count(this.run.result.files.length, "file") : ""}`);
  }

  #onOutput(text) {
    this.screen.update();
    byId("output").hidden = this.run.screen.isEmpty;
    this.said.text = (this.said.text + text).slice(-SAID_MAX);
    if (Date.now() - this.said.at < SAID_MS || !this.said.text) return;
    byId("output-said").textContent = this.said.text;
    this.said = { at: Date.now(), text: "" };
  }

  #words() {
    const { phase, result, error, position } = this.run;
    if (phase === "starting") return ["busy", "Starting"];
    if (phase === "queued") return ["busy", `Waiting: number ${position} in the queue`];
    if (phase === "running") return ["busy", "Running"];
    if (phase === "failed") return ["bad", error.kind === "busy" ? "The server is busy" : error.kind === "away" ? "No connection" : "Not run"];
    return ENDINGS[result.status] ?? ["quiet", result.status];
  }

  #facts() {
    const { result, phase, startedAt } = this.run;
    if (phase !== "ended") return phase === "failed" ? [] : [duration(Math.floor((Date.now() - startedAt) / 100) * 100)];
    const found = [];
    if (result.exitCode) found.push(`exit code ${result.exitCode}`);
    if (result.signal) found.push(`signal ${result.signal}`);
    found.push(duration(result.durationMs ?? 0));
    if (result.peakMemoryBytes) found.push(bytes(result.peakMemoryBytes));
    if (result.cpuMs) found.push(`${duration(result.cpuMs)} of CPU`);
    if (result.queueMs > 100) found.push(`waited ${duration(result.queueMs)}`);
    return found;
  }

  #drawStatus() {
    const [kind, words] = this.#words();
    this.status.dataset.kind = kind;
    fill(this.status, h("span", { class: "dot", ariaHidden: "true" }), h("strong", {}, words), h("span", { class: "facts" }, this.#facts().join(" · ")));
  }

  #drawOutput() {
    const { run } = this;
    this.screen.update();
    byId("output").hidden = run.screen.isEmpty;
    byId("silent").hidden = !(run.phase === "ended" && run.screen.isEmpty && !run.result.files?.length);
    const tools = byId("output-tools");
    tools.hidden = run.screen.isEmpty || !run.isOver;
    fill(tools, button("copy", "Copy output", () => copy(run.screen.text()), { quiet: true }),
      button("markdown", "Read the output as Markdown", () => this.#asMarkdown(), { quiet: true }), this.#saveButton());
    fill(byId("notes"), ...this.#notes());
  }

  #saveButton() {
    const whole = this.run.wholeOutput;
    return whole ? button("download", "Save all output as a file", () => saveAs(new Blob(whole, { type: "text/plain" }), "output.txt"), { quiet: true }) : null;
  }

  async #asMarkdown() {
    const { markdown } = await import("./markdown.js");
    openDialog("Output", markdown(this.run.screen.text().slice(0, 200_000))).dialog.classList.add("wide");
  }

  #notes() {
    const { run } = this;
    const { result, error } = run;
    const found = [];
    if (error && run.phase === "failed") found.push(this.#errorNote(error));
    if (!run.isOver) return found;
    if (run.screen.dropped) found.push(this.#cutNote(`The first ${count(run.screen.dropped, "line")} of the output are not shown.`));
    else if (run.gaps) found.push(this.#cutNote(`${bytes(run.gaps)} of ${bytes(run.seen)} of output came too fast, and the server does not keep them. To have all of it, write it to a file.`));
    if (!result?.advice && ADVICE[result?.status]) found.push(note("advice", ADVICE[result.status]));
    if (result?.reason) found.push(note("advice", result.reason));
    if (result?.stateLost) found.push(note("advice", "The kept variables are lost: the interpreter ended."));
    else if (result?.sessionStarted) found.push(note("quiet", "A new interpreter was started: its variables are kept for the next run."));
    for (const text of [...(result?.advice ?? []), result?.sessionNote, ...(result?.notices ?? [])]) if (text) found.push(note("advice", text));
    return found;
  }

  #cutNote(text) {
    const whole = this.run.wholeOutput;
    return note("advice", text, whole ? h("button", { type: "button", class: "link", onclick: () => saveAs(new Blob(whole, { type: "text/plain" }), "output.txt") },
      `Save all of it (${bytes(this.run.seen)})`) : null);
  }

  #errorNote(error) {
    const wait = error.retryAfterMs ? ` A place is likely in ${duration(error.retryAfterMs)}.` : "";
    const text = error.kind === "busy" ? `All places are taken${error.position ? `, and ${count(error.position, "run")} wait` : ""}.${wait}` : error.message;
    return note("error", text, error.kind === "token" ? h("button", { type: "button", class: "link", onclick: this.actions.showToken }, "Enter another token")
      : h("button", { type: "button", class: "link", onclick: this.actions.retry }, "Try again"));
  }

  #drawFiles() {
    const files = this.run.phase === "ended" ? this.run.result.files ?? [] : [];
    const there = files.filter((file) => file.change !== "deleted" && file.url);
    const shown = there.filter((file) => isPicture(file.mimeType) || isTable(file.name) || /\.md$/i.test(file.name));
    fill(byId("shown"), ...shown.slice(0, SHOWN).map((file) => figure(file)),
      shown.length > SHOWN ? h("p", { class: "quiet" }, `${count(shown.length - SHOWN, "more picture or table", "more pictures and tables")}: see the files below.`) : null);
    byId("made").hidden = files.length === 0;
    fill(byId("made-list"), ...files.map(row));
    const omitted = this.run.result?.filesOmitted;
    byId("made-more").textContent = omitted ? `${count(omitted, "more file")}: see Files.` : "";
  }
}

function note(kind, ...content) {
  return h("p", { class: `note ${kind}` }, ...content);
}

function figure(file) {
  return h("figure", { class: "made" }, preview(file), h("figcaption", {}, h("bdi", {}, file.name)));
}

export function downloadLink(file, ...content) {
  return h("a", { href: ownUrl(file.url), download: file.name.split("/").pop(), ariaLabel: `Download ${file.name}`, title: "Download", class: "sign" }, ...content, icon("download"));
}

function row(file) {
  const deleted = file.change === "deleted";
  const line = [icon("file"), h("bdi", { class: "name" }, file.name), h("span", { class: "size" }, deleted ? "deleted" : bytes(file.size))];
  if (deleted || !canShow(file)) return h("li", {}, h("div", { class: "line" }, line), deleted || !file.url ? null : downloadLink(file));
  const details = h("details", {}, h("summary", { class: "line" }, line));
  details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(preview(file)));
  return h("li", {}, details, downloadLink(file));
}

// The runs of this tab, the newest first.
import { button, byId, fill, h } from "./dom.js";
import { count, duration, time } from "./format.js";

const ENTRIES = 30;
const OUTPUT_MAX = 32 << 20; // characters of output of all runs that can be shown again

/** actions: show(entry), again(entry), edit(entry), changed(). An entry: {key, language, code, options, at, status, ms, runId}; its run is kept apart. */
export class HistoryView {
  constructor(entries, actions) {
    this.entries = entries;
    this.actions = actions;
    this.runs = new Map(); // key -> Run, of this load of the page
    this.draw();
  }

  add(run, options) {
    const entry = { key: `${Date.now()}-${Math.random()}`, language: run.order.language, code: run.order.code, options, at: run.startedAt, status: "running", ms: 0 };
    this.entries.unshift(entry);
    for (const old of this.entries.splice(ENTRIES)) this.runs.delete(old.key);
    this.runs.set(entry.key, run);
    this.draw();
    return entry;
  }

  end(entry, run) {
    entry.status = run.phase === "failed" ? "not run" : run.result.status;
    entry.ms = run.result?.durationMs ?? 0;
    this.#forgetLarge();
    this.draw();
    this.actions.changed();
  }

  /** The newest runs keep their output. */
  #forgetLarge() {
    let left = OUTPUT_MAX;
    for (const { key } of this.entries) {
      left -= this.runs.get(key)?.rawLength ?? 0;
      if (left < 0) this.runs.delete(key);
    }
  }

  draw() {
    byId("history-count").textContent = this.entries.length || "";
    byId("history-empty").hidden = this.entries.length > 0;
    fill(byId("history"), ...this.entries.map((entry) => this.#row(entry)));
  }

  #row(entry) {
    const first = entry.code.split("\n").find((line) => line.trim() && !/^\s*(import|from|#|\/\/)/.test(line)) ?? entry.code.split("\n")[0];
    const bad = !["ok", "running", "cancelled"].includes(entry.status);
    const facts = [time(entry.at), entry.language, count(entry.code.split("\n").length, "line"), entry.status === "running" ? "running" : `${entry.status}${entry.ms ? `, ${duration(entry.ms)}` : ""}`];
    const words = [h("code", {}, first.slice(0, 120)), h("span", { class: "size" }, facts.join(" · "))];
    const shown = this.runs.has(entry.key) ? h("button", { type: "button", class: "entry", onclick: () => this.actions.show(entry), title: "Show its result" }, words) : h("div", { class: "entry" }, words);
    return h("li", { class: bad ? "bad" : null }, shown,
      h("span", { class: "tools" }, button("rename", "Put it into the editor", () => this.actions.edit(entry), { quiet: true }), button("again", "Run it again", () => this.actions.again(entry), { quiet: true })));
  }
}

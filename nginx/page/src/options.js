// How a program runs: what stands below the editor.
import { button, byId, fill, h } from "./dom.js";
import { callTool } from "./mcp.js";

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Options {
  constructor({ conversation, fail }) {
    this.conversation = conversation;
    this.fail = fail;
    this.properties = {};
    byId("add-variable").addEventListener("click", () => this.#addVariable().querySelector("input").focus());
    byId("forget").addEventListener("click", () => this.#forget());
    byId("options").addEventListener("input", () => this.draw());
    byId("session").addEventListener("change", () => this.draw());
  }

  /** What run_code takes on this server, from its schema. */
  offer(tool) {
    this.properties = tool?.inputSchema?.properties ?? {};
    const { timeoutMs } = this.properties;
    byId("limit").placeholder = timeoutMs?.default ? String(timeoutMs.default / 1000) : "";
    if (timeoutMs?.maximum) byId("limit").max = timeoutMs.maximum / 1000;
    byId("limit-help").textContent = timeoutMs?.maximum ? `up to ${timeoutMs.maximum / 1000} s` : "";
    this.draw();
  }

  setLanguage(language) {
    this.language = language;
    this.draw();
  }

  draw() {
    const { properties } = this;
    const may = Boolean(properties.session) && this.language !== "bash";
    byId("network").disabled = !properties.network;
    byId("network").closest("label").title = properties.network ? "The program may reach the internet" : "This server gives programs no network";
    byId("session").disabled = !may;
    byId("session").closest("label").title = may ? "Variables, functions and imports are there for the next run" : "Not for this language, or not on this server";
    byId("forget").hidden = !this.session;
    for (const part of document.querySelectorAll("[data-not-with-session]")) part.disabled = this.session;
    byId("session-excludes").hidden = !this.session;
    const set = [byId("limit").value, this.args.length, byId("stdin").value, Object.keys(this.environment).length].filter(Boolean).length;
    byId("options-set").textContent = set ? String(set) : "";
  }

  get session() {
    return byId("session").checked && !byId("session").disabled;
  }

  get args() {
    return byId("args").value.split("\n").filter((line) => line !== "");
  }

  get environment() {
    const pairs = [...byId("variables").children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value)).filter(([name]) => name.trim());
    return Object.fromEntries(pairs.map(([name, value]) => [name.trim(), value]));
  }

  /** Why it cannot run so; "": it can. */
  problem() {
    const wrong = Object.keys(this.environment).find((name) => !NAME.test(name));
    if (wrong !== undefined) return `“${wrong}” is no name of an environment variable: use letters, digits and _, no digit first.`;
    return byId("limit").checkValidity() ? "" : `The time limit is a number of seconds from 1 to ${byId("limit").max || "the server's limit"}.`;
  }

  get values() {
    const { session } = this;
    return {
      network: byId("network").checked && !byId("network").disabled, session, timeoutMs: Math.round(1000 * Number(byId("limit").value)) || null,
      environment: session ? {} : this.environment, args: session ? [] : this.args, stdin: session ? "" : byId("stdin").value,
    };
  }

  set values(values) {
    byId("network").checked = Boolean(values.network);
    byId("session").checked = Boolean(values.session);
    byId("limit").value = values.timeoutMs ? values.timeoutMs / 1000 : "";
    byId("args").value = (values.args ?? []).join("\n");
    byId("stdin").value = values.stdin ?? "";
    fill(byId("variables"));
    for (const [name, value] of Object.entries(values.environment ?? {})) this.#addVariable(name, value);
    this.draw();
  }

  #addVariable(name = "", value = "") {
    const row = h("div", { class: "variable" },
      h("input", { type: "text", ariaLabel: "Name", placeholder: "NAME", value: name, spellcheck: "false", autocomplete: "off", "data-not-with-session": true }),
      h("input", { type: "text", ariaLabel: "Value", placeholder: "value", value, spellcheck: "false", autocomplete: "off", "data-not-with-session": true }),
      button("close", "Remove this variable", () => { row.remove(); this.draw(); byId("add-variable").focus(); }, { quiet: true }));
    byId("variables").append(row);
    return row;
  }

  async #forget() {
    try {
      await callTool("reset_session", { conversationId: this.conversation(), language: this.language });
      byId("forget").textContent = "Forgotten";
      setTimeout(() => { byId("forget").textContent = "Forget variables"; }, 2000);
    } catch (problem) {
      this.fail(problem);
    }
  }
}

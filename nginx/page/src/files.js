// The conversation's files: a tree, uploads on their way, and what can be done with each.
import { announce, ask, button, byId, fill, h, icon } from "./dom.js";
import { bytes, count } from "./format.js";
import { callTool } from "./mcp.js";
import { ownUrl } from "./place.js";
import { canShow, preview } from "./preview.js";
import { downloadLink } from "./result.js";
import { upload } from "./upload.js";

const MOST = 2000; // entries that are shown
const PAGE = 500;

export class FilesView {
  /** conversation(): its id; fail(error): shows it. */
  constructor({ conversation, fail }) {
    this.conversation = conversation;
    this.fail = fail;
    this.uploads = [];
    this.open = new Set();
    const picker = byId("picker");
    picker.addEventListener("change", () => {
      this.upload([...picker.files].map((file) => ({ file, name: file.name })));
      picker.value = "";
    });
    fill(byId("files-tools"), button("upload", "Upload", () => picker.click()), button("download", "Download all", () => this.#archive("")),
      button("again", "Look again", () => this.load(), { quiet: true }), button("delete", "Delete everything", () => this.#deleteAll(), { quiet: true }));
  }

  async load() {
    const conversation = this.conversation();
    const rows = [];
    let cursor;
    try {
      do {
        const { data } = await callTool("list_files", { conversationId: conversation, recursive: true, limit: PAGE, detail: "full", ...(cursor ? { cursor } : {}) });
        rows.push(...data.files);
        cursor = data.nextCursor;
      } while (cursor && rows.length < MOST);
    } catch (problem) {
      if (problem.kind !== "argument") this.fail(problem);
    }
    if (conversation !== this.conversation()) return;
    const same = JSON.stringify(rows) === JSON.stringify(this.rows);
    this.more = Boolean(cursor);
    this.rows = rows;
    if (!same) this.draw(); // else what is open would close for a moment
  }

  draw() {
    const files = (this.rows ?? []).filter((row) => row.type === "file");
    byId("files-count").textContent = files.length ? `${files.length}${this.more ? "+" : ""}` : "";
    byId("files-empty").hidden = (this.rows ?? []).length > 0 || this.uploads.length > 0;
    fill(byId("tree"), ...this.#level(treeOf(this.rows ?? [])));
    byId("files-more").textContent = this.more ? `The first ${count(MOST, "entry", "entries")} are shown. Download all for the rest.` : "";
  }

  #level(node) {
    const names = [...node.keys()].sort((a, b) => (isFolder(node.get(b)) - isFolder(node.get(a))) || a.localeCompare(b));
    return names.map((name) => (isFolder(node.get(name)) ? this.#folder(name, node.get(name)) : this.#file(name, node.get(name).row)));
  }

  #folder(name, { row, children }) {
    const details = h("details", {}, h("summary", { class: "line" }, icon("folder"), h("bdi", { class: "name" }, name), h("span", { class: "size" }, count(children.size, "entry", "entries"))),
      h("ul", { class: "tree" }, this.#level(children)));
    this.#stayOpen(details, row);
    return h("li", {}, details, h("span", { class: "tools" }, button("download", `Download the folder ${name}`, () => this.#archive(row.name), { quiet: true }), ...this.#changes(row)));
  }

  #file(name, row) {
    const line = [icon("file"), h("bdi", { class: "name" }, name), h("span", { class: "size" }, row.type === "file" ? bytes(row.size) : row.type)];
    const tools = h("span", { class: "tools" }, row.url ? downloadLink(row) : null, ...this.#changes(row));
    if (!canShow(row)) return h("li", {}, h("div", { class: "line" }, line), tools);
    const details = h("details", {}, h("summary", { class: "line" }, line));
    details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(preview(row)));
    this.#stayOpen(details, row);
    return h("li", {}, details, tools);
  }

  /** What is open stays open when the tree is drawn again. */
  #stayOpen(details, { name }) {
    details.open = this.open.has(name);
    details.addEventListener("toggle", () => (details.open ? this.open.add(name) : this.open.delete(name)));
  }

  #changes(row) {
    return [button("rename", `Rename ${row.name}`, () => this.#rename(row), { quiet: true }), button("delete", `Delete ${row.name}`, () => this.#delete(row), { quiet: true })];
  }

  async #do(tool, args) {
    try {
      return await callTool(tool, { conversationId: this.conversation(), ...args });
    } catch (problem) {
      this.fail(problem);
      return null;
    } finally {
      await this.load();
    }
  }

  async #rename(row) {
    const to = await ask({ title: "Rename", label: "New name (folders with /)", value: row.name, yes: "Rename" });
    if (to && to !== row.name) await this.#do("move_file", { from: row.name, to });
  }

  async #delete(row) {
    const folder = row.type === "folder";
    const text = `${row.name}${folder ? " and everything in it" : ""} will be gone. Links to it end.`;
    if ((await ask({ title: `Delete this ${folder ? "folder" : "file"}?`, text, yes: "Delete", danger: true })) === null) return;
    if (await this.#do("delete_file", { filename: row.name, ...(folder ? { recursive: true } : {}) })) announce(`Deleted ${row.name}`);
  }

  async #deleteAll() {
    const text = "All files, links and kept results of this conversation will be gone.";
    if ((await ask({ title: "Delete everything?", text, yes: "Delete everything", danger: true })) !== null) await this.#do("delete_conversation", {});
  }

  async #archive(folder) {
    const made = await this.#do("download_archive", { format: "zip", ...(folder ? { folder } : {}) });
    if (made) h("a", { href: ownUrl(made.data.url), download: made.data.name }).click();
  }

  /** files: [{file, name}] */
  async upload(files) {
    if (files.length === 0) return;
    await upload(files, this.conversation(), (item) => this.#onUpload(item));
    await this.load();
  }

  #onUpload(item) {
    this.uploads = this.uploads.filter((one) => one !== item);
    if (item.done) announce(`Uploaded ${item.name}`);
    else if (!item.abort.signal.aborted) this.uploads.push(item);
    this.#drawUploads();
  }

  #drawUploads() {
    fill(byId("uploads"), ...this.uploads.map((one) => h("li", { class: one.error ? "bad" : null },
      h("div", { class: "line" }, icon("upload"), h("bdi", { class: "name" }, one.name), h("span", { class: "size" }, one.error ?? `${Math.floor(100 * one.part)} % of ${bytes(one.size)}`)),
      h("span", { class: "tools" }, button("close", one.error ? "Put this message away" : `Cancel ${one.name}`, () => this.#dropUpload(one), { quiet: true })),
      one.error ? null : h("progress", { max: "1", value: one.part, ariaLabel: `Upload of ${one.name}` }))));
    byId("files-empty").hidden = (this.rows ?? []).length > 0 || this.uploads.length > 0;
  }

  #dropUpload(item) {
    item.cancel();
    this.uploads = this.uploads.filter((one) => one !== item);
    this.#drawUploads();
  }
}

const isFolder = (node) => node.row.type === "folder" || node.children.size > 0;

/** Rows with names like a/b/c as nodes {row, children}, each level a Map. */
function treeOf(rows) {
  const top = new Map();
  for (const row of rows) {
    let level = top;
    let path = "";
    const parts = row.name.split("/");
    parts.forEach((part, i) => {
      path += (i ? "/" : "") + part;
      if (!level.has(part)) level.set(part, { row: { name: path, type: "folder" }, children: new Map() });
      if (i === parts.length - 1) level.get(part).row = row;
      level = level.get(part).children;
    });
  }
  return top;
}

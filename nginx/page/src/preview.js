// The beginning of a file: a table, markdown, a picture, or text. What a browser could run is shown as text.
import { h } from "./dom.js";
import { bytes, count } from "./format.js";
import { isPicture, picture } from "./picture.js";
import { ownUrl } from "./place.js";

const START = 512 << 10; // bytes of a file that are read
const ROWS = 200;
const COLUMNS = 50;

const ends = (name, ...kinds) => kinds.some((kind) => name.toLowerCase().endsWith(`.${kind}`));

export const isTable = (name) => ends(name, "csv", "tsv");
const isMarkdown = (name) => ends(name, "md", "markdown");
const isText = (file) => /^(text\/|application\/(json|xml|javascript|x-(sh|ndjson|yaml)))/.test(file.mimeType ?? "") ||
  ends(file.name, "txt", "log", "json", "jsonl", "py", "ts", "js", "mjs", "sh", "yaml", "yml", "toml", "ini", "sql", "html", "htm", "svg", "xml", "css", "c", "h", "rs", "go");

export const canShow = (file) => Boolean(file.url) && (isPicture(file.mimeType) || ends(file.name, "png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "svg") || isTable(file.name) || isMarkdown(file.name) || isText(file));

/** The first bytes of a file as text; whole: there is no more. */
async function start(url) {
  const answer = await fetch(url, { cache: "no-cache", credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(answer.status === 404 ? "The file is not there any more." : `The server answered ${answer.status}.`);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return { text: text + decoder.decode(), whole: true };
    text += decoder.decode(value, { stream: true });
    length += value.length;
    if (length >= START) {
      reader.cancel().catch(() => {});
      return { text, whole: false };
    }
  }
}

async function table(text, whole) {
  const { default: Papa } = await import("papaparse");
  const parsed = Papa.parse(text.replace(/^\ufeff/, ""), { preview: ROWS + 2, skipEmptyLines: true });
  const rows = parsed.data.map((row) => row.slice(0, COLUMNS));
  if (rows.length === 0) return h("p", { class: "quiet" }, "The table is empty.");
  const [head, ...body] = rows;
  const numeric = head.map((_, i) => body.length > 0 && body.every((row) => !row[i] || !Number.isNaN(Number(row[i]))));
  const cells = (row, tag) => head.map((_, i) => h(tag, { class: numeric[i] ? "number" : null, scope: tag === "th" ? "col" : null }, row[i] ?? ""));
  const more = body.length > ROWS || !whole || parsed.data[0].length > COLUMNS;
  return h("figure", {},
    h("div", { class: "scroll", tabindex: "0", role: "region", ariaLabel: "Table" }, h("table", {},
      h("thead", {}, h("tr", {}, cells(head, "th"))), h("tbody", {}, body.slice(0, ROWS).map((row) => h("tr", {}, cells(row, "td")))))),
    more ? h("figcaption", {}, `The first ${count(Math.min(ROWS, body.length), "row")}${parsed.data[0].length > COLUMNS ? ` and ${COLUMNS} columns` : ""}. Download it for the rest.`) : null);
}

async function content(file, url) {
  const { text, whole } = await start(url);
  if (isTable(file.name)) return table(text, whole);
  if (isMarkdown(file.name)) return (await import("./markdown.js")).markdown(text);
  return h("figure", {}, h("pre", { class: "text", tabindex: "0" }, text),
    whole ? null : h("figcaption", {}, `The first ${bytes(START)}. Download it for the rest.`));
}

/** An element that fills itself. */
export function preview(file) {
  const url = ownUrl(file.url);
  if (isPicture(file.mimeType) || ends(file.name, "png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "svg")) return picture(url, file.name);
  const place = h("div", { class: "preview" }, h("p", { class: "quiet" }, "Loading…"));
  content(file, url).then((made) => place.replaceChildren(made), (problem) => place.replaceChildren(h("p", { class: "quiet" }, problem.message)));
  return place;
}

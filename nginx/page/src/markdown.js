// Markdown as elements. marked only takes the text apart; what is made of it is listed here, and HTML in it stays text.
import { Lexer } from "marked";
import { h } from "./dom.js";
import { ownUrl } from "./place.js";
import { picture } from "./picture.js";

const children = (token) => (token.tokens ? inline(token.tokens) : [token.text ?? token.raw]);

const INLINE = {
  text: (token) => (token.tokens ? inline(token.tokens) : [token.text]),
  escape: (token) => [token.text],
  strong: (token) => h("strong", {}, children(token)),
  em: (token) => h("em", {}, children(token)),
  del: (token) => h("del", {}, children(token)),
  codespan: (token) => h("code", {}, token.text),
  br: () => h("br"),
  link: (token) => link(token.href, children(token)),
  image: (token) => (ownUrl(token.href) ? picture(ownUrl(token.href), token.text) : link(token.href, [token.text || token.href])),
};

/** A place elsewhere is named, and visited only by a click; other schemes than https and http are text. */
function link(href, words) {
  let url;
  try {
    url = new URL(href);
  } catch {
    return words;
  }
  if (!/^https?:$/.test(url.protocol)) return words;
  const own = ownUrl(href);
  return h("a", { href: own ?? url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, words, own ? null : h("small", {}, ` (${url.host})`));
}

const inline = (tokens) => tokens.flatMap((token) => (INLINE[token.type] ? INLINE[token.type](token) : [token.raw]));

const BLOCKS = {
  space: () => null,
  hr: () => h("hr"),
  heading: (token) => h(`h${Math.min(6, token.depth + 2)}`, {}, children(token)),
  paragraph: (token) => h("p", {}, children(token)),
  text: (token) => h("p", {}, children(token)),
  code: (token) => h("pre", {}, h("code", {}, token.text)),
  blockquote: (token) => h("blockquote", {}, blocks(token.tokens)),
  list: (token) => h(token.ordered ? "ol" : "ul", {}, token.items.map((item) => h("li", {},
    item.task ? (item.checked ? "☑ " : "☐ ") : null, item.tokens.flatMap((part) => (part.type === "text" ? inline(part.tokens ?? [part]) : blocks([part])))))),
  table: (token) => h("div", { class: "scroll", tabindex: "0" }, h("table", {},
    h("thead", {}, h("tr", {}, token.header.map((cell) => h("th", {}, inline(cell.tokens))))),
    h("tbody", {}, token.rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, inline(cell.tokens)))))))),
};

const blocks = (tokens) => tokens.map((token) => (BLOCKS[token.type] ? BLOCKS[token.type](token) : h("p", {}, token.raw))).filter(Boolean);

export function markdown(text) {
  return h("div", { class: "markdown" }, blocks(new Lexer({ gfm: true }).lex(text)));
}

// Shows a Screen: blocks of lines, which the browser lays out only where they are seen, made anew once in a frame where they changed.
import { DROP_LINES } from "./screen.js";
import { h } from "./dom.js";

const BLOCK = 250; // lines; DROP_LINES is a multiple of it
const MAX_STYLED = 20_000; // elements; what is coloured beyond is plain

export class ScreenView {
  /** element scrolls. */
  constructor(element) {
    this.element = element;
    this.show(null);
  }

  show(screen) {
    this.screen = screen;
    this.blocks = new Map(); // number -> {element, styled}
    this.styled = 0;
    this.element.replaceChildren();
    if (screen) screen.firstChanged = 0;
    this.update();
  }

  /** Something changed: drawn in the next frame. */
  update() {
    if (this.due || !this.screen) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.#draw();
    });
  }

  #draw() {
    const { screen, element } = this;
    if (!screen || screen.firstChanged === Infinity) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    for (const number of this.blocks.keys()) if ((number + 1) * BLOCK <= screen.dropped) this.#remove(number);
    const first = Math.floor(Math.max(screen.firstChanged, screen.dropped) / BLOCK);
    const last = Math.floor((screen.dropped + screen.lines.length - 1) / BLOCK);
    for (let number = first; number <= last; number++) this.#drawBlock(number);
    screen.firstChanged = Infinity;
    if (atEnd) element.scrollTop = element.scrollHeight;
  }

  #remove(number) {
    const block = this.blocks.get(number);
    this.styled -= block.styled;
    block.element.remove();
    this.blocks.delete(number);
  }

  #drawBlock(number) {
    const from = number * BLOCK - this.screen.dropped;
    const lines = this.screen.lines.slice(Math.max(0, from), from + BLOCK);
    let block = this.blocks.get(number);
    if (!block) {
      block = { element: h("div", { class: "block" }), styled: 0 };
      this.blocks.set(number, block);
      this.element.append(block.element);
    }
    this.styled -= block.styled;
    const pieces = piecesOf(lines, MAX_STYLED - this.styled, from + BLOCK >= this.screen.lines.length);
    block.styled = pieces.filter((piece) => typeof piece !== "string").length;
    this.styled += block.styled;
    block.element.replaceChildren(...pieces);
  }
}

/** Texts and at most max elements, the fewest that show the lines. */
function piecesOf(lines, max, last) {
  const pieces = [];
  let plain = "";
  let styled = 0;
  const add = (text, style) => {
    if (!style || styled >= max) {
      plain += text;
      return;
    }
    if (plain) pieces.push(plain);
    plain = "";
    styled++;
    const piece = h("span", { class: style.classes }, text);
    if (style.fg) piece.style.color = style.fg;
    if (style.bg) piece.style.backgroundColor = style.bg;
    pieces.push(piece);
  };
  for (const line of lines) {
    for (const [text, style] of line.spans) add(text, style);
    if (line.beyond) add(` … and ${line.beyond.toLocaleString("en")} more characters`, { classes: "note", fg: "", bg: "" });
    plain += "\n";
  }
  if (last && plain) plain = plain.slice(0, -1); // the line that begins behind the last newline
  if (plain) pieces.push(plain);
  return pieces;
}

if (DROP_LINES % BLOCK !== 0) throw new Error("DROP_LINES must be a multiple of BLOCK");

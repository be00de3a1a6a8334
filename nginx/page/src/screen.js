// What a terminal would show of a program's output: colours, carriage returns, and steps of the cursor in the newest lines. All other
// sequences are taken away: nothing that a program prints does anything but colour text. Plain data; screen-view.js shows it.

const MAX_LINES = 120_000; // then the oldest go
export const DROP_LINES = 5000; // at once
const MAX_COLUMNS = 20_000; // of a line; the rest is counted
const MAX_UP = 200; // lines that the cursor may climb
const ESCAPE = "\x1b";
const SEQUENCE_MAX = 4096; // a longer one is no sequence

const NAMES = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse", 9: "strike" };

/** A style is its classes as text, and colours beyond the sixteen as "#rrggbb" in fg and bg. Equal styles are one object. */
const styles = new Map();
function styleOf(set, error) {
  const classes = [...set.flags, set.fg !== null && typeof set.fg === "number" ? `f${set.fg}` : "", set.bg !== null && typeof set.bg === "number" ? `b${set.bg}` : "", error ? "err" : ""]
    .filter(Boolean).join(" ");
  const fg = typeof set.fg === "string" ? set.fg : "";
  const bg = typeof set.bg === "string" ? set.bg : "";
  const key = `${classes}|${fg}|${bg}`;
  if (!styles.has(key)) {
    if (styles.size > 4096) styles.clear();
    styles.set(key, classes || fg || bg ? { classes, fg, bg } : null);
  }
  return styles.get(key);
}

const hex = (r, g, b) => `#${[r, g, b].map((x) => Math.min(255, x | 0).toString(16).padStart(2, "0")).join("")}`;

/** One of xterm's 256 colours. */
function paletteColour(n) {
  if (n < 16) return n;
  if (n >= 232) return hex(...Array(3).fill(8 + 10 * (n - 232)));
  const level = (x) => (x ? 55 + 40 * x : 0);
  return hex(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6));
}

/** The colour that follows 38 or 48 in numbers at i: [colour, how many numbers it took]. */
function longColour(numbers, i) {
  if (numbers[i] === 5 && numbers[i + 1] <= 255) return [paletteColour(numbers[i + 1]), 2];
  if (numbers[i] === 2 && i + 3 < numbers.length) return [hex(numbers[i + 1], numbers[i + 2], numbers[i + 3]), 4];
  return [null, numbers.length];
}

export class Screen {
  constructor() {
    this.clear();
  }

  clear() {
    this.lines = [{ spans: [], length: 0 }]; // a span is [text, style]; length is in columns, beyond what is left out
    this.dropped = 0; // lines that are gone
    this.firstChanged = 0; // the first line, counted from the very first, that changed since this was set to Infinity
    this.column = 0;
    this.row = 0; // in lines
    this.set = { flags: new Set(), fg: null, bg: null };
    this.pending = "";
    this.style = { out: null, err: null };
  }

  /** stream: "stdout" or "stderr" */
  write(text, stream = "stdout") {
    this.current = stream === "stderr" ? "err" : "out";
    text = this.pending + text;
    this.pending = "";
    let i = 0;
    while (i < text.length) {
      const code = text.charCodeAt(i);
      if (code === 0x1b || code === 0x9b) {
        const end = this.#sequence(text, i);
        if (end < 0) {
          this.pending = text.slice(i);
          break;
        }
        i = end;
      } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        this.#control(code);
        i++;
      } else {
        let end = i + 1;
        while (end < text.length && (text.charCodeAt(end) >= 0xa0 || (text.charCodeAt(end) >= 0x20 && text.charCodeAt(end) < 0x7f))) end++;
        this.#put(text.slice(i, end));
        i = end;
      }
    }
  }

  /** A line of the server's own. */
  note(text) {
    if (this.#line().length > 0) this.#newline();
    this.#touch().spans.push([text, { classes: "note", fg: "", bg: "" }]);
    this.#line().length = text.length;
    this.#newline();
  }

  get isEmpty() {
    return this.lines.length === 1 && !this.lines[0].length && this.dropped === 0;
  }

  text() {
    return this.lines.map((line) => line.spans.map(([text]) => text).join("")).join("\n");
  }

  #line() {
    return this.lines[this.row];
  }

  #touch() {
    const line = this.#line();
    this.firstChanged = Math.min(this.firstChanged, this.dropped + this.row);
    return line;
  }

  #styleNow() {
    this.style[this.current] ??= { made: styleOf(this.set, this.current === "err") };
    return this.style[this.current].made;
  }

  #put(text) {
    const line = this.#touch();
    const length = line.length;
    if (this.column >= MAX_COLUMNS) {
      line.beyond = (line.beyond ?? 0) + text.length;
      return;
    }
    const room = MAX_COLUMNS - this.column;
    if (text.length > room) {
      line.beyond = (line.beyond ?? 0) + text.length - room;
      text = text.slice(0, room);
    }
    const style = this.#styleNow();
    if (this.column === length) {
      const last = line.spans.at(-1);
      if (last && last[1] === style) last[0] += text;
      else line.spans.push([text, style]);
    } else {
      this.#overwrite(line, text, style);
    }
    this.column += text.length;
    line.length = Math.max(length, this.column);
  }

  /** Puts text into the middle of a line, or behind its end with blanks between. */
  #overwrite(line, text, style) {
    const length = line.length;
    const before = cut(line.spans, 0, Math.min(this.column, length));
    if (this.column > length) before.push([" ".repeat(this.column - length), null]);
    line.spans = join([...before, [text, style], ...cut(line.spans, this.column + text.length, length)]);
  }

  #newline() {
    this.row++;
    this.column = 0;
    if (this.row < this.lines.length) return;
    this.lines.push({ spans: [], length: 0 });
    if (this.lines.length > MAX_LINES) {
      this.lines.splice(0, DROP_LINES);
      this.row -= DROP_LINES;
      this.dropped += DROP_LINES;
    }
    this.#touch();
  }

  #control(code) {
    if (code === 0x0a || code === 0x0b || code === 0x0c || code === 0x85) this.#newline();
    else if (code === 0x0d) this.column = 0;
    else if (code === 0x08) this.column = Math.max(0, this.column - 1);
    else if (code === 0x09) this.#put(" ".repeat(8 - (this.column % 8)));
    else if (code !== 0x07 && code < 0x20) this.#put(String.fromCharCode(0x2400 + code)); // its picture
  }

  /** The end of the sequence at i, carried out; -1: it is not whole yet. */
  #sequence(text, i) {
    const csi = text.charCodeAt(i) === 0x9b;
    const kind = csi ? "[" : text[i + 1];
    if (kind === undefined) return -1;
    if (kind === "[") return this.#csi(text, i + (csi ? 1 : 2), i);
    if ("]PX^_".includes(kind)) return skipString(text, i);
    if ("()*+-./#%".includes(kind)) return i + 3 <= text.length ? i + 3 : -1;
    return i + 2;
  }

  #csi(text, from, start) {
    let end = from;
    while (end < text.length && text.charCodeAt(end) >= 0x20 && text.charCodeAt(end) < 0x40) end++;
    if (end - start > SEQUENCE_MAX) return end;
    if (end === text.length) return -1;
    const final = text[end];
    const numbers = text.slice(from, end).replace(/:/g, ";").split(";").map((n) => (/^\d{1,5}$/.test(n) ? Number(n) : 0));
    if (/^[\d;:]*$/.test(text.slice(from, end))) this.#obey(final, numbers);
    return final >= "@" && final <= "~" ? end + 1 : end;
  }

  #obey(final, numbers) {
    const n = Math.max(1, numbers[0] ?? 1);
    if (final === "m") this.#colour(numbers);
    else if (final === "K") this.#erase(numbers[0]);
    else if (final === "G") this.column = Math.min(n - 1, MAX_COLUMNS);
    else if (final === "C") this.column = Math.min(this.column + n, MAX_COLUMNS);
    else if (final === "D") this.column = Math.max(0, this.column - n);
    else if (final === "A" || final === "F") this.row = Math.max(0, this.row - n, this.lines.length - MAX_UP);
    else if (final === "B" || final === "E") this.row = Math.min(this.lines.length - 1, this.row + n);
    if (final === "E" || final === "F") this.column = 0;
  }

  #erase(how) {
    const line = this.#touch();
    const length = line.length;
    if (how === 2) line.spans = [];
    else if (how === 1) line.spans = [[" ".repeat(Math.min(this.column, length)), null], ...cut(line.spans, this.column, length)];
    else line.spans = cut(line.spans, 0, Math.min(this.column, length));
    line.length = line.spans.reduce((sum, [text]) => sum + text.length, 0);
    line.beyond = 0;
  }

  #colour(numbers) {
    const { set } = this;
    this.style = { out: null, err: null };
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i];
      if (n === 0) this.set = Object.assign(set, { flags: new Set(), fg: null, bg: null });
      else if (NAMES[n]) set.flags.add(NAMES[n]);
      else if (n === 22) ["bold", "dim"].forEach((flag) => set.flags.delete(flag));
      else if (NAMES[n - 20]) set.flags.delete(NAMES[n - 20]);
      else if (n >= 30 && n <= 37) set.fg = n - 30;
      else if (n >= 90 && n <= 97) set.fg = n - 82;
      else if (n >= 40 && n <= 47) set.bg = n - 40;
      else if (n >= 100 && n <= 107) set.bg = n - 92;
      else if (n === 39) set.fg = null;
      else if (n === 49) set.bg = null;
      else if (n === 38 || n === 48) {
        const [colour, took] = longColour(numbers, i + 1);
        set[n === 38 ? "fg" : "bg"] = colour;
        i += took;
      }
    }
  }
}

/** The part of spans between two columns. */
function cut(spans, from, to) {
  const found = [];
  let at = 0;
  for (const [text, style] of spans) {
    const piece = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (piece) found.push([piece, style]);
    at += text.length;
  }
  return found;
}

function join(spans) {
  const found = [];
  for (const [text, style] of spans) {
    const last = found.at(-1);
    if (last && last[1] === style) last[0] += text;
    else found.push([text, style]);
  }
  return found;
}

/** Behind a string sequence (a title, a link …): it ends with BEL or ESC \. -1: not whole yet. */
function skipString(text, i) {
  for (let end = i + 2; end < text.length; end++) {
    if (end - i > SEQUENCE_MAX || text[end] === "\n") return end;
    if (text[end] === "\x07") return end + 1;
    if (text[end] === ESCAPE) return text[end + 1] === undefined ? -1 : end + (text[end + 1] === "\\" ? 2 : 0);
  }
  return text.length - i > SEQUENCE_MAX ? text.length : -1;
}

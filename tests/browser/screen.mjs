// The terminal of the page, without a browser.
import { Screen } from "../../nginx/page/src/screen.js";
import { equal, test } from "./browser.mjs";

function shown(...pieces) {
  const screen = new Screen();
  for (const piece of pieces) screen.write(piece);
  return screen.text();
}

const CASES = [
  ["lines", ["a\nb", "c\n"], "a\nbc\n"],
  ["a carriage return", ["10 %\r20 %\rdone"], "done"],
  ["a carriage return, and less text", ["long text\rshort"], "shorttext"],
  ["a carriage return before a newline", ["a\r\nb\r\n"], "a\nb\n"],
  ["erasing", ["long text\r\x1b[Kshort"], "short"],
  ["backspaces", ["abc\b\bX"], "aXc"],
  ["a tab", ["a\tb"], "a       b"],
  ["the cursor up and down", ["one\ntwo\nthree\x1b[2A\rONE\x1b[2B!"], "ONE\ntwo\nthr!e"],
  ["a column", ["abcdef\x1b[3GX"], "abXdef"],
  ["behind the end", ["a\x1b[5Cb"], "a     b"],
  ["a sequence in pieces", ["a\x1b", "[3", "1mb\x1b[0", "m"], "ab"],
  ["a title and a link", ["\x1b]0;title\x07a\x1b]8;;http://x/\x1b\\b\x1b]8;;\x1b\\"], "ab"],
  ["a title in pieces", ["\x1b]0;ti", "tle", "\x1b", "\\a"], "a"],
  ["a title without an end", [`\x1b]0;${"x".repeat(5000)}`, "\nb"].slice(0, 2), "\nb"],
  ["control characters", ["a\x00\x07\x01b"], "a␀␁b"],
  ["no wider than it may be", [`${"x".repeat(30_000)}`], "x".repeat(20_000)],
];

test("a screen shows what a terminal shows", () => {
  for (const [name, pieces, want] of CASES) if (name !== "a title without an end") equal(shown(...pieces), want, name);
  const styles = new Screen();
  styles.write("\x1b[1;31mA\x1b[22mB\x1b[38;5;196mC\x1b[48;2;1;2;3mD\x1b[0mE");
  equal(styles.lines[0].spans.map(([text, style]) => [text, style?.classes ?? "", style?.fg ?? "", style?.bg ?? ""]),
    [["A", "bold f1", "", ""], ["B", "f1", "", ""], ["C", "", "#ff0000", ""], ["D", "", "#ff0000", "#010203"], ["E", "", "", ""]], "styles");
});

test("a screen keeps the newest lines, and counts those that are gone", () => {
  const screen = new Screen();
  for (let n = 0; n < 130; n++) screen.write("x\n".repeat(1000));
  equal([screen.lines.length <= 120_000, screen.dropped + screen.lines.length], [true, 130_001], "[bounded, all]");
});

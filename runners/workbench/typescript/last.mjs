// The value of a program's last line is shown, as a console does it, where that is an expression which is there for its value.

queueMicrotask(() => delete require.cache[import.meta.path]);

const SHOWN_MAX = 4000; // characters
const LINES_MAX = 40; // of the expression
const BEGINS = /^[\w$'"!~[(`]/;
// Such a line goes on the one before, unless that has ended.
const MAY_GO_ON = /^[[(`]/;
const NO_VALUE =
  /^(abstract|async|break|case|class|console|const|continue|debugger|declare|delete|do|else|enum|export|finally|for|function|if|import|interface|let|namespace|process|return|switch|throw|try|type|using|var|void|while)\b/;
const TEXT = /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'|`(\\.|[^`\\])*`/g;
const BRACKETS = /\([^()]*\)|\[[^[\]]*\]|\{[^{}]*\}/g;
const CHANGES = /[^=!<>]=(?![=>])|(<<|>>)=|^(\+\+|--)|(\+\+|--);?$/;
const CALLED_TO_ACT = /\.(push|unshift|splice|set|add|delete|clear|write|writeFile|appendFile|end|listen|on|once|forEach)\s*\([^]*\)$/;

function parses(transpiler, code) {
  try {
    transpiler.scan(code);
    return true;
  } catch {
    return false;
  }
}

// Where the last statement may begin; -1: none.
function beginning(code) {
  let at = code.length;
  for (let lines = 0; lines < LINES_MAX && at > 0; lines++) {
    at = code.lastIndexOf("\n", at - 1);
    const line = code.slice(at + 1, at + 2);
    if (BEGINS.test(line)) return MAY_GO_ON.test(line) && !/(^|;)\s*$/.test(code.slice(0, at + 1)) ? -1 : at + 1;
    if (at < 0) break;
  }
  return -1;
}

function changes(expression) {
  let bare = expression.replace(TEXT, "t");
  for (let before = ""; bare !== before; ) [before, bare] = [bare, bare.replace(BRACKETS, "b")];
  return CHANGES.test(bare);
}

// A semicolon hides what a call returns.
function isForItsValue(expression) {
  if (NO_VALUE.test(expression) || changes(expression) || CALLED_TO_ACT.test(expression)) return false;
  return !expression.endsWith(";") || !/[('"`]/.test(expression);
}

// Workers and what is imported again have it not.
const KEY = Symbol.for("show");
const SHOW = 'void(globalThis[Symbol.for("show")]??(v=>v))'; // what begins with a bracket could go on the line before

// The program in a form that shows it; null: it is none of these.
export function withLastShown(whole) {
  const code = whole.trimEnd();
  const at = beginning(code);
  const expression = code.slice(at);
  if (at < 0 || !isForItsValue(expression)) return null;
  const value = expression.replace(/\s*;+$/, "");
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  if (!parses(transpiler, `(${value}\n)`) || !parses(transpiler, code.slice(0, at))) return null;
  return `${code.slice(0, at)}${SHOW}((${value}\n))\n`;
}

function isData(value) {
  if (value === undefined || value === null || typeof value === "function") return false;
  return value.constructor?.name !== "ShellOutput" && !["then", "on", "addEventListener", "unref"].some((name) => typeof value[name] === "function");
}

// Whatever the value does, it does no harm to the program.
function show(value) {
  try {
    if (!isData(value)) return;
    const text = Bun.inspect(value);
    console.log(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);
  } catch {}
}

export function lendShow() {
  Object.defineProperty(globalThis, KEY, { value: show, configurable: true });
}

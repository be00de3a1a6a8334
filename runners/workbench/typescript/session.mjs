// Runs cells of TypeScript one after the other, in Bun, in a container that stays; what a cell declares is there for
// the next ones.
//
// Descriptor 3 leads to the server. Records go both ways, a length of four bytes (big-endian) and JSON: to us
// {"code": …, "input": …, "args": […], "env": ["NAME=value", …]}, from us {"ready": true} once and {"done": true, "exitCode": n} behind the output of each cell.
//
// A cell is a module in a file of its own, so that Bun sees to types, imports, await and the lines of errors. Behind its
// last line it gets a function that hands out ways to its variables, which become properties of the global object: later
// cells read and write the very variables, and a cell that declares a name again has a new one. A second module, which
// the cell imports and which imports the cell, calls that function before the cell runs: so the ways are there when it fails.
//
// A cell lies where its files are, under a hidden name until it has been read: /data/.cell-1.ts. Its mode says that it is no user's, as
// that of a run's program does (runners/common/script.c).

import { Buffer } from "node:buffer";
import { closeSync, createReadStream, lstatSync, mkdtempSync, openSync, read, rmSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { runInNewContext } from "node:vm";

const CHANNEL = 3;
const FAILED = 1;
const KEEP = Symbol.for("session.keep");
// Of what a cell says it imports, types do not exist when it runs.
const NO_EXPORT = /^Export named '([^']+)' not found/;
// One of the lines, at the beginning of what Bun makes for its own prompt, that name all variables.
const NAMES = /^var ([^;=]+);$/;

const { Bun, console, process, queueMicrotask, setImmediate } = globalThis;
// What the language itself brings: Bun's own modules rely on it, so a cell that declares such a name has it for itself.
const language = new Set(runInNewContext("Object.getOwnPropertyNames(globalThis)"));
const transpiler = new Bun.Transpiler({ loader: "ts", replMode: true });
const folder = mkdtempSync(join(tmpdir(), "session-"));
const home = process.cwd();
const STICKY = 0o1000;
// Other images have none.
const { lendShow, withLastShown } = await import("/usr/local/lib/sandbox/typescript/last.mjs").catch(() => ({}));
let cells = 0;
let failures = 0; // errors that no handler caught

function declared(code) {
  const names = [];
  for (const line of transpiler.transformSync(code).split("\n")) {
    const found = NAMES.exec(line);
    if (!found) break;
    names.push(...found[1].split(", "));
  }
  return names.filter((name) => !language.has(name));
}

// A way to one variable: it may be a constant, which throws then.
const handle = (name) => `${JSON.stringify(name)}:[()=>${name},($value)=>eval(${JSON.stringify(`${name}=$value`)})]`;

function works(get) {
  try {
    get();
    return true;
  } catch {
    return false;
  }
}

// Makes the file of a cell; one that another interpreter has left goes, and a user's stays.
function place(name, code) {
  const path = join(home, `.${name}`);
  try {
    if (lstatSync(path, { throwIfNoEntry: false })?.mode & STICKY) rmSync(path);
    writeFileSync(path, code, { flag: "wx", mode: STICKY | 0o600 });
    return path;
  } catch {
    const apart = join(folder, name);
    writeFileSync(apart, code);
    return apart;
  }
}

// Imports a cell. The answer is what does not exist of its imports: it has to be tried without a way to that.
async function load(code, names, name) {
  const way = join(folder, `${name}-ways.mjs`);
  const ways = `export function $ways(){return{${names.map(handle).join()}}}`;
  const cell = place(`${name}.ts`, `${code}\n${ways}import${JSON.stringify(way)};`);
  writeFileSync(
    way,
    `import*as cell from${JSON.stringify(cell)};globalThis[Symbol.for("session.keep")](cell.$ways(),${JSON.stringify(cell)});`,
  );
  try {
    await import(cell);
  } catch (error) {
    const missing = error instanceof SyntaxError && NO_EXPORT.exec(error.message);
    if (missing && names.includes(missing[1])) return missing[1];
    throw error;
  } finally {
    rmSync(cell, { force: true });
  }
}

async function run(code) {
  let kept = {};
  globalThis[KEEP] = (ways, cell) => {
    kept = ways;
    rmSync(cell, { force: true });
  };
  cells += 1;
  try {
    let names = declared(code);
    let file = `cell-${cells}`;
    for (let missing; (missing = await load(code, names, file)); file += "_")
      names = names.filter((name) => name !== missing);
  } finally {
    for (const [name, [get, set]] of Object.entries(kept))
      // What was not reached has no value, and the one of before stays.
      if (works(get)) Reflect.defineProperty(globalThis, name, { get, set, configurable: true, enumerable: true });
  }
}

function fail(error) {
  failures += 1;
  console.error(error);
}

function writeWhole(fd, data) {
  for (let sent = 0; sent < data.length; ) {
    try {
      sent += writeSync(fd, data, sent);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Bun.sleepSync(1);
    }
  }
}

// Writes of the stream are over when they return, as those of the console: Bun does not tell when others are.
function writeAtOnce(stream, fd) {
  stream.write = (chunk, encoding, callback) => {
    writeWhole(fd, typeof chunk === "string" ? Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8") : chunk);
    const done = typeof encoding === "function" ? encoding : callback;
    if (done) queueMicrotask(done);
    return true;
  };
}

// Input and arguments are the cell's alone, and a new process.stdin each time; variables of the environment stay.
function begin({ input = "", args = [], env = [] }) {
  process.argv.splice(2, Infinity, ...args);
  for (const item of env) process.env[item.slice(0, item.indexOf("="))] = item.slice(item.indexOf("=") + 1);
  const file = join(folder, "stdin");
  writeFileSync(file, input);
  closeSync(0);
  openSync(file); // the lowest descriptor that is free
  unlinkSync(file);
  let stream;
  const get = () => (stream ??= createReadStream(null, { fd: 0, autoClose: false }));
  Object.defineProperty(process, "stdin", { get, configurable: true, enumerable: true });
  console[Symbol.asyncIterator] = () => createInterface({ input: process.stdin })[Symbol.asyncIterator]();
}

function receivePart(size) {
  const data = Buffer.alloc(size);
  return new Promise((resolve, reject) => {
    read(CHANNEL, data, 0, size, null, (error, n) => (error ? reject(error) : resolve(data.subarray(0, n))));
  });
}

async function receiveBytes(size) {
  const parts = [];
  for (let have = 0; have < size; ) {
    const part = await receivePart(Math.min(size - have, 65536));
    if (part.length === 0) process.exit(0);
    parts.push(part);
    have += part.length;
  }
  return Buffer.concat(parts);
}

async function receive() {
  const size = (await receiveBytes(4)).readUInt32BE();
  return JSON.parse((await receiveBytes(size)).toString());
}

function send(record) {
  const text = Buffer.from(JSON.stringify(record));
  const data = Buffer.concat([Buffer.alloc(4), text]);
  data.writeUInt32BE(text.length);
  writeWhole(CHANNEL, data);
}

writeAtOnce(process.stdout, 1);
writeAtOnce(process.stderr, 2);
lendShow?.();
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
send({ ready: true });
for (;;) {
  const cell = await receive();
  failures = 0;
  begin(cell);
  try {
    await run(withLastShown?.(cell.code) ?? cell.code);
  } catch (error) {
    fail(error);
  }
  // What was resolved but not awaited gets its turn, and so do errors in it.
  await new Promise(setImmediate);
  send({ done: true, exitCode: failures ? FAILED : (process.exitCode ?? 0) });
  process.exitCode = undefined;
}

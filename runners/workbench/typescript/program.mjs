// Runs before every program. What it writes to process.stdout and process.stderr is written when the call returns, as node
// does with pipes: Bun writes when the reader takes it, and process.exit drops the rest. The program is not among the files
// that it lists. The value of its last line is shown (last.mjs).
//
// Only programs that do such things are touched, and only when they begin: nothing else is loaded for the others, which
// would change the order of process.nextTick and microtasks. An interpreter that is forked has this from warm.mjs.
import { lendShow, withLastShown } from "./last.mjs";

const decoder = new TextDecoder();

const OF_PROGRAM = /^\.script(-\d)?\.(py|sh|ts)$/;
const STICKY = 0o1000; // of a program that runs (runners/common/script.c)

function ownCode() {
  try {
    return decoder.decode(Bun.mmap(process.argv[1]));
  } catch {
    return ""; // it is empty
  }
}

function makeWhole() {
  const { writeSync } = require("node:fs");
  const write = (fd, data) => {
    for (let sent = 0; sent < data.length; ) {
      try {
        sent += writeSync(fd, data, sent);
      } catch (error) {
        if (error.code !== "EAGAIN") throw error;
        Bun.sleepSync(1);
      }
    }
  };
  for (const [stream, fd] of [[process.stdout, 1], [process.stderr, 2]]) {
    stream.write = (chunk, encoding, callback) => {
      const done = typeof encoding === "function" ? encoding : callback;
      write(fd, typeof chunk === "string" ? Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8") : chunk);
      if (done) queueMicrotask(done);
      return true;
    };
  }
}

function hideProgram() {
  const fs = require("node:fs");
  const { readdir, readdirSync, promises, lstatSync } = fs;
  const readdirPromised = promises.readdir;
  const isProgram = (entry) => {
    const name = String(entry.name ?? entry);
    return OF_PROGRAM.test(name) && (lstatSync(`/data/${name}`, { throwIfNoEntry: false })?.mode & STICKY) !== 0;
  };
  const others = (entries) => entries.filter((entry) => !isProgram(entry));
  fs.readdirSync = (...given) => others(readdirSync(...given));
  promises.readdir = async (...given) => others(await readdirPromised(...given));
  fs.readdir = (...given) => {
    const done = given.pop();
    readdir(...given, (error, entries) => done(error, entries && others(entries)));
  };
}

function showLast(code) {
  const shown = withLastShown(code);
  if (!shown) return;
  require("node:fs").writeFileSync(process.argv[1], shown, { flag: "r+" });
  lendShow();
}

export function prepare() {
  const code = ownCode();
  if (code.includes("process.exit") && code.includes(".write(")) makeWhole();
  if (code.includes("readdir")) hideProgram();
  showLast(code);
}

const option = process.execArgv.findIndex((text) => text.endsWith("/program.mjs"));
if (option >= 0) process.execArgv.splice(option, 1);
queueMicrotask(() => delete require.cache[import.meta.path]);
prepare();

// Runs before every program: what it writes to process.stdout and process.stderr is written when the call returns, as node
// does with pipes. Bun writes when the reader takes it, and process.exit drops the rest.
//
// Only programs that can lose something are touched, and only when they begin: nothing else is loaded for the others, which
// would change the order of process.nextTick and microtasks. An interpreter that is forked has this from warm.mjs.
const decoder = new TextDecoder();

function needsWhole() {
  try {
    const code = decoder.decode(Bun.mmap(process.argv[1]));
    return code.includes("process.exit") && code.includes(".write(");
  } catch {
    return false; // it is empty
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

export function wholeOutput() {
  if (needsWhole()) makeWhole();
}

const option = process.execArgv.findIndex((text) => text.endsWith("/whole.mjs"));
if (option >= 0) process.execArgv.splice(option, 1);
queueMicrotask(() => delete require.cache[import.meta.path]);
wholeOutput();

// Holds a template: a Bun that those of the programs are forked from, before their programs are known.
//
// Bun has found the (empty) script and loads this file first; descriptor 3 leads to the entry program (what is said there:
// runners/common/entry.h). Then this file ends in a fork, whose program has come, and Bun goes on by itself: it reads the
// script as it would have without us. So nothing may stay behind, and nothing may be loaded that changes what follows:
// with node:fs the order of process.nextTick and microtasks would be another one.
//
// In the image this file's name has no suffix. Bun reads a preload with one in threads, which a fork does not have.
import { dlopen } from "bun:ffi";
import { setRandomSeed } from "bun:jsc";

const PACKET_MAX = 65536;
const { symbols: warm } = dlopen("/usr/local/lib/sandbox/warm.so", {
  sandbox_child: { args: ["ptr", "usize"], returns: "int" },
  sandbox_seed: { args: [], returns: "u32" },
});
const { prepare } = require("./program.mjs");
const { withLastShown } = require("./last.mjs");
const packet = new Uint8Array(PACKET_MAX);
const decoder = new TextDecoder();

// Makes Bun look as if it had been started for this program. Bun keeps a copy of the variables that cannot be reached
// from here and that Bun.spawn and workers take theirs from: programs that name these get a new interpreter (-s).
function take(length) {
  for (const item of decoder.decode(packet.subarray(0, length)).slice(1).split("\0")) {
    const text = item.slice(1);
    if (item[0] === "A") process.argv.push(text);
    if (item[0] === "E") process.env[text.slice(0, text.indexOf("="))] = text.slice(text.indexOf("=") + 1);
  }
}

// What every program does is done once before the forks: it takes less time in them.
function warmUp() {
  new Bun.Transpiler({ loader: "ts" }).transformSync("let warm: number = 1; export default warm;");
  withLastShown("const warm = `${1}`;\nwarm.at(0)");
  setRandomSeed(warm.sandbox_seed());
  take(0);
}

process.execArgv.shift();
queueMicrotask(() => {
  delete require.cache[import.meta.path];
  warmUp();
  take(warm.sandbox_child(packet, PACKET_MAX));
  prepare();
  setRandomSeed(warm.sandbox_seed());
});

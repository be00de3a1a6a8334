// Holds Bun, started before its program is known, on the way into that program.
//
// Bun has found the (empty) script and loads this file first; descriptor 3 leads to the entry program (what is said there:
// runners/common/entry.h). When the program has come, this file ends, and Bun goes on by itself: it reads the script as
// it would have without us. So nothing may stay behind, and nothing may be loaded that changes what follows: with node:fs
// the order of process.nextTick and microtasks would be another one, so that reading and writing are the C library's.
import { dlopen } from "bun:ffi";

const HOOK = 3;
const PACKET_MAX = 65536;
const transfer = { args: ["int", "ptr", "usize"], returns: "int" };
const libc = dlopen("libc.so.6", { read: transfer, write: transfer, close: { args: ["int"], returns: "int" } });

function send(letter) {
  libc.symbols.write(HOOK, new TextEncoder().encode(letter), 1);
}

// The next packet. Without the entry program there is no point in living.
function receive() {
  const packet = new Uint8Array(PACKET_MAX);
  const size = libc.symbols.read(HOOK, packet, PACKET_MAX);
  if (size <= 0) process.exit(0);
  return new TextDecoder().decode(packet.subarray(0, size));
}

// Makes Bun look as if it had been started for this program. Bun keeps a copy of the variables that cannot be reached
// from here and that Bun.spawn and workers take theirs from: programs that name these get a new interpreter (-s).
function take(packet) {
  for (const item of packet.slice(1).split("\0")) {
    const text = item.slice(1);
    if (item[0] === "A") process.argv.push(text);
    if (item[0] === "E") process.env[text.slice(0, text.indexOf("="))] = text.slice(text.indexOf("=") + 1);
  }
}

function wait() {
  new Bun.Transpiler({ loader: "ts" }).transformSync("let warm: number = 1; export default warm;");
  send("U");
  let packet = receive();
  while (packet[0] === "P") {
    send("D");
    packet = receive();
  }
  take(packet);
  send("Y");
  libc.symbols.close(HOOK);
  libc.close();
}

process.execArgv.shift();
wait();
queueMicrotask(() => delete require.cache[import.meta.path]);

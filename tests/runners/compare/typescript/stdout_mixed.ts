// ways: all
import fs from "node:fs";
console.log("one");
process.stdout.write("two\n");
fs.writeSync(1, "three\n");
await Bun.write(Bun.stdout, "four\n");
console.error("error one");
process.stderr.write("error two\n");
console.table([{ a: 1, b: "x" }]);
console.log("%s is %d %o", "x", 5, { a: 1 }, process.stdout.isTTY, process.stdout.columns);
console.group("group");
console.warn("inside");
console.groupEnd();
console.count();
console.assert(false, "asserted");

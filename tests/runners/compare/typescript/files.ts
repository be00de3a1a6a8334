// file: in.txt
//| some text
import fs from "node:fs";
const file = Bun.file("in.txt");
console.log(await file.text(), file.size, file.type, await Bun.file("none").exists(), process.cwd());
await Bun.write("out.json", JSON.stringify({ a: 1 }));
fs.mkdirSync("deep/er", { recursive: true });
fs.writeFileSync("deep/er/x", "y", { mode: 0o640 });
fs.symlinkSync("x", "deep/er/link");
console.log(fs.readdirSync("/data", { recursive: true }).filter((name) => name !== ".script.ts").sort(), fs.readdirSync("/tmp"), process.umask().toString(8));
const writer = Bun.file("written.txt").writer();
writer.write("part one, ");
writer.write("part two");
await writer.end();

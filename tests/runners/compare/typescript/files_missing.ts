import fs from "node:fs";
try {
    fs.readFileSync("/nowhere");
} catch (e) {
    console.log((e as any).code, (e as any).errno, (e as Error).message);
}
await Bun.file("/nowhere").text();

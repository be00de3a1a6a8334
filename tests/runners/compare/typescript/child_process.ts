import { execSync, spawn, spawnSync } from "node:child_process";
console.log(execSync("echo from sh").toString(), spawnSync("sh", ["-c", "echo err >&2; exit 3"]).status);
const child = spawn("sh", ["-c", "cat; exit 4"], { stdio: ["pipe", "inherit", "inherit"] });
child.stdin!.end("text\n");
console.log(await new Promise((resolve) => child.on("exit", (code, signal) => resolve([code, signal]))));
const p = Bun.spawn(["sh", "-c", "kill -9 $$"]);
await p.exited;
console.log(p.exitCode, p.signalCode);

import fs from "node:fs";
// Which of its own descriptors Bun has open is its business; nothing of ours may be among them.
const names = fs.readdirSync("/proc/self/fd").map((fd) => { try { return fs.readlinkSync("/proc/self/fd/" + fd); } catch { return ""; } });
console.log(names.filter((name) => name !== "" && !name.startsWith("anon_inode:")).map((name) => name.replace(/\d+/g, "N")).sort());

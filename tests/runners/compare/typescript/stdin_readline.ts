// stdin: Ada\n36\n
import readline from "node:readline/promises";
const rl = readline.createInterface({ input: process.stdin, output: process.stdout });
console.log(await rl.question("name? "));
for await (const line of rl) console.log("line", line);

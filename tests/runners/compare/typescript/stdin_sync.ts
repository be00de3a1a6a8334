// stdin: read at once\n
import fs from "node:fs";
console.log(JSON.stringify(fs.readFileSync(0, "utf8")), fs.fstatSync(0).isFile());

import fs from "node:fs";
fs.unlinkSync(Bun.main);
throw new Error("the source is gone");

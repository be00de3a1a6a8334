// fresh: ^random (\S+)
// fresh: ^uuid (\S+)
// fresh: ^bytes (\S+)
// fresh: ^v7 (\S+)
import crypto from "node:crypto";
console.log("random", Math.random());
console.log("uuid", crypto.randomUUID());
console.log("bytes", crypto.randomBytes(16).toString("hex"));
console.log("v7", Bun.randomUUIDv7());

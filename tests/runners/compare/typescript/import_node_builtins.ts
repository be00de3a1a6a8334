import assert from "node:assert";
import crypto from "crypto";
import os from "node:os";
import path from "path";
import util from "node:util";
import zlib from "zlib";
assert.equal(path.join("/a", "../b"), "/b");
console.log(util.inspect(new Map([[1, { a: [new Set([2])] }]]), { depth: 4 }), os.EOL === "\n", os.hostname(), os.homedir(), os.tmpdir());
console.log(crypto.createHash("sha256").update("x").digest("hex"), zlib.gunzipSync(zlib.gzipSync("text")).toString());

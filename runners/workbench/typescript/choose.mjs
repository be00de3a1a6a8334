// Prints how a program is to be run, if another way than `bun run` is the one that works: tests, jsx, decorators. Names in
// texts (a program may write files of tests) do not count.
import { readFileSync } from "node:fs";

const RUNNERS = ["bun:test", "node:test", "@jest/globals", "vitest"];
const code = readFileSync(process.argv[2], "utf8");
const bare = code.replace(/`[^`]*`/g, "``");

function imports(loader, tsconfig) {
  try {
    return new Bun.Transpiler({ loader, tsconfig }).scan(code).imports.map(({ path }) => path);
  } catch {
    return null; // it is none
  }
}

function hasTests(names) {
  if (names.some((name) => RUNNERS.includes(name))) return true;
  return (
    /^(describe|test|it)(\.\w+)*\s*\(/m.test(bare) &&
    /\bexpect\s*\(/.test(bare) &&
    !/\b(function|const|let|var|import)\b[^;\n]*\b(describe|test|it|expect)\b\s*[=(,}]/.test(bare)
  );
}

const names = imports("ts");
if (!names && imports("tsx")) console.log("jsx");
else if (names && hasTests(names)) console.log("tests");
else if (/(^|[\s{};])@\w/.test(bare) && /PropertyDescriptor|reflect-metadata/.test(bare)) console.log("decorators");

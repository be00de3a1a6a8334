// The program is read as a file with JSX. A pragma @jsx names a function, as it does for TypeScript.
import { readFileSync } from "node:fs";

const path = process.argv[1];
const option = process.execArgv.findIndex((text) => text.endsWith("/jsx.mjs"));
if (option >= 0) process.execArgv.splice(option, 1);
Bun.plugin({
  name: "jsx",
  setup(build) {
    build.onLoad({ filter: /\/\.script[^/]*\.ts$/ }, (file) => {
      const code = readFileSync(file.path, "utf8");
      if (file.path !== path) return { contents: code, loader: "ts" };
      const classic = /@jsx\s/.test(code) && !code.includes("@jsxRuntime") ? "/** @jsxRuntime classic */ " : "";
      return { contents: classic + code, loader: "tsx" };
    });
  },
});
queueMicrotask(() => delete require.cache[import.meta.path]);

(globalThis as any).leak = 1;
console.log(Reflect.ownKeys(globalThis).includes("leak"), typeof Bun.gc, Bun.inspect({ a: 1 }), navigator.hardwareConcurrency === require("os").cpus().length);
console.log(new Error().stack!.split("\n").length, (function f() { return new Error().stack!.split("\n").length; })());

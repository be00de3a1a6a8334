class Point { constructor(public x: number, private y = 2) {} get sum() { return this.x + this.y; } }
console.log(new Point(1), [1, , 3], new Map([["a", { b: { c: { d: 1 } } }]]), Symbol("s"), 10n, null, undefined, -0, () => 1);
console.log(new Date(0), /re/g, new Uint8Array([1, 2]), new Error("e").message, { "a b": 1, get g() { return 1; } }, "s", ["s"]);

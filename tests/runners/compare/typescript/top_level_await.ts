const value = await new Promise<number>((resolve) => setTimeout(() => resolve(5), 20));
console.log(value);
for await (const n of (async function* () { yield 1; yield 2; })()) console.log(n);

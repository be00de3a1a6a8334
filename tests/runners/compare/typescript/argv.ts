// args: one "two words" "" --flag
console.log(process.argv, Bun.argv);

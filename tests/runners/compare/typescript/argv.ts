// args: one "two words" "" --flag -x é
console.log(process.argv, Bun.argv, process.argv0, process.execArgv, process.title);

// args: one "two words" "" --flag -x é
// ways: all
console.log(process.argv, Bun.argv, process.argv0, process.execArgv, process.title);

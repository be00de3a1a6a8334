process.on("exit", (code) => console.log("exit", code, process.exitCode));
let times = 0;
process.on("beforeExit", (code) => {
    console.log("beforeExit", code);
    if (times++ < 1) setTimeout(() => console.log("more work"), 10);
});
console.log("main");

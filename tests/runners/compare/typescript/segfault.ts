console.log("before");
require("fs").writeSync(1, "a line\n");
process.kill(process.pid, "SIGSEGV");

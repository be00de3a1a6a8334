console.log("a line");
process.kill(process.pid, "SIGKILL");

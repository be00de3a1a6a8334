process.exitCode = 9;
console.log("end");

console.log(Object.keys(process).sort().join(" "));
console.log(process.exitCode, process.listenerCount("exit"), process.eventNames(), process.features);

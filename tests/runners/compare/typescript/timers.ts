setImmediate(() => console.log("immediate"));
queueMicrotask(() => console.log("microtask"));
process.nextTick(() => console.log("tick"));
const i = setInterval(() => { console.log("interval"); clearInterval(i); setTimeout(() => console.log("timeout"), 10); }, 10);
console.log("main");

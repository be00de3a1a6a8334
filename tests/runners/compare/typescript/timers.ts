setTimeout(() => console.log("timeout"), 30);
setImmediate(() => console.log("immediate"));
queueMicrotask(() => console.log("microtask"));
process.nextTick(() => console.log("tick"));
const i = setInterval(() => { console.log("interval"); clearInterval(i); }, 10);
console.log("main");

process.on("uncaughtException", (e) => {
    console.log("caught", e.message);
});
setTimeout(() => console.log("goes on"), 20);
throw new Error("x");

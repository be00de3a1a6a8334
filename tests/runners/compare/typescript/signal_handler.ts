process.on("SIGTERM", () => {
    console.log("got SIGTERM");
    process.exit(21);
});
process.kill(process.pid, "SIGTERM");
setTimeout(() => {}, 5000);

process.on("unhandledRejection", (reason) => {
    console.log("handled", String(reason));
});
Promise.reject(new Error("x"));
setTimeout(() => console.log("goes on"), 20);

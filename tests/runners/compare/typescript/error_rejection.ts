async function work() {
    await null;
    throw new RangeError("rejected");
}
work();
setTimeout(() => console.log("never"), 5000);

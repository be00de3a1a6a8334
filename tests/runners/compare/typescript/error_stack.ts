function one() {
    return new Error("a stack").stack;
}
const two = () => one();
console.log(two());
try {
    (undefined as any).property;
} catch (e) {
    console.log((e as Error).stack, (e as any).line, (e as any).column);
}
console.trace("traced");

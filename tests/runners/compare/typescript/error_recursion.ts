function deep(n: number): number {
    return 1 + deep(n + 1);
}
try {
    deep(0);
} catch (e) {
    console.log(e instanceof RangeError, (e as Error).message);
}

try {
    await fetch("http://192.0.2.1/", { signal: AbortSignal.timeout(3000) });
} catch (e) {
    console.log((e as any).code ?? (e as Error).name);
}
try {
    await fetch("http://no-such-host.invalid/");
} catch (e) {
    console.log((e as any).code, (e as Error).message);
}

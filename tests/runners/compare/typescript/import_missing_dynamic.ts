try {
    await import("no-such-package");
} catch (e) {
    console.log((e as any).name, (e as any).code, (e as Error).message);
}
await import("/data/no-such-file.ts");

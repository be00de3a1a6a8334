console.log(Object.keys(require.cache), [...(globalThis as any).Loader?.registry?.keys?.() ?? []].filter((k: string) => !k.startsWith("node:")));

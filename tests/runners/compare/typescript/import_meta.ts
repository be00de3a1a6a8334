console.log(import.meta.url, import.meta.path, import.meta.dir, import.meta.file, import.meta.main);
console.log(import.meta.filename, import.meta.dirname, import.meta.resolve("./x.ts"), Object.keys(import.meta.env).length > 0);

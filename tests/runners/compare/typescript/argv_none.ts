console.log(process.argv.length, process.execPath, Bun.version, process.version, process.platform, process.arch);

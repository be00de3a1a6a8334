const p = Bun.spawnSync([process.execPath, "-e", "console.log(process.argv.slice(1), Object.keys(process.env).length, process.execArgv)"]);
console.log(p.stdout.toString(), p.stderr.toString(), p.exitCode);

// stdin: line one\nline two ü\n
console.log(JSON.stringify(await Bun.stdin.text()));

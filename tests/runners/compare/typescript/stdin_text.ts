// stdin: line one\nline two ü\n
// ways: all
console.log(JSON.stringify(await Bun.stdin.text()));

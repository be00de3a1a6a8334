// stdin: some\x00bytes\xff
let data = Buffer.alloc(0);
process.stdin.on("data", (part) => { data = Buffer.concat([data, part]); });
process.stdin.on("end", () => console.log(data, process.stdin.isTTY, process.stdin.fd));

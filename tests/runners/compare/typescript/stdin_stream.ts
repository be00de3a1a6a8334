// stdin: one\ntwo\nthree
// ways: all
for await (const line of console) console.log("line", line);

// stdin: one\ntwo\nthree
for await (const line of console) console.log("line", line);

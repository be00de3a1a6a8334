// stdin: answer\ny\n
console.log(prompt("question?"), confirm("sure?"), prompt("more?"));

// stdin: x,y\n1,2\n
import Papa from "papaparse";
console.log(Papa.parse(await Bun.stdin.text(), { header: true, dynamicTyping: true, skipEmptyLines: true }));
console.log(Papa.unparse([{ a: 1, b: "x,y" }]));

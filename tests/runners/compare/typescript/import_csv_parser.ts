// file: a.csv
//| name,value
//| a,1
//| "b, c",2
import csv from "csv-parser";
import fs from "node:fs";
fs.createReadStream("a.csv").pipe(csv()).on("data", (row) => console.log(row)).on("end", () => console.log("end"));

// file: node_modules/papaparse/package.json
//| {"name": "papaparse", "version": "0.0.1", "main": "index.js"}
// file: node_modules/papaparse/index.js
//| module.exports = "the user's own";
// file: use.ts
//| import Papa from "papaparse";
//| export default Papa;
// either: started preloaded
import Papa from "/data/use.ts";
console.log(Papa);

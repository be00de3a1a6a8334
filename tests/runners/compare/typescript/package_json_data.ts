// file: package.json
//| {"name": "mine", "type": "commonjs", "imports": {"#own": "./own.js"}}
// file: own.js
//| module.exports = { own: typeof module };
// either: started preloaded
const own = require("/data/own.js");
console.log(own);

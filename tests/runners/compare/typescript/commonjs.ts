// file: helper.cjs
//| exports.value = 5;
//| exports.main = require.main === module;
const helper = require("./helper.cjs".replace("./", "/data/"));
console.log(helper, typeof require, typeof module.exports, require.resolve("/data/helper.cjs"), Object.keys(require.cache));

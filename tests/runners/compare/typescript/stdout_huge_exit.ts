const fs = require("fs");
for (let n = 0; n < 2000; n++) fs.writeSync(1, "y".repeat(499) + "\n");
process.exit(2);

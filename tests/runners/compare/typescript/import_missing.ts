console.log("never");
import x from "no-such-package";
console.log(x);

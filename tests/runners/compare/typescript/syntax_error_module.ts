// file: broken.ts
//| export const x: = 5;
import { x } from "/data/broken.ts";
console.log("never", x);

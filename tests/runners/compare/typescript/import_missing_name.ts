// file: helper.ts
//| export const a = 1;
import { b } from "/data/helper.ts";
console.log(b);

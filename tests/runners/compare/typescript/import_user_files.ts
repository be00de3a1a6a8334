// file: lib/util.ts
//| import { deeper } from "./deeper";
//| export const name = "util " + deeper;
//| export default class Thing { where = import.meta.path; }
// file: lib/deeper.ts
//| export const deeper = "deeper";
import Thing, { name } from "/data/lib/util";
console.log(name, new Thing());
const again = await import("/data/lib/util.ts");
console.log(again.default === Thing);

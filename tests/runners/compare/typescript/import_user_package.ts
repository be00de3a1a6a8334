// file: node_modules/mine/package.json
//| {"name": "mine", "version": "1.2.3", "type": "module", "exports": "./main.ts"}
// file: node_modules/mine/main.ts
//| export const value: number = 7;
// file: use.ts
//| export { value } from "mine";
// either: started
import { value } from "/data/use.ts";
console.log(value);

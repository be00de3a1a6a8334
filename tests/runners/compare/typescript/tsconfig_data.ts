// file: tsconfig.json
//| {"compilerOptions": {"baseUrl": ".", "paths": {"@lib/*": ["lib/*"]}, "experimentalDecorators": true}}
// file: lib/a.ts
//| export const a = 5;
// file: main.ts
//| import { a } from "@lib/a";
//| export default a;
// either: started preloaded
import a from "/data/main.ts";
console.log(a);

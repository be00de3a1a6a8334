// file: helper.ts
//| export function divide(a: number, b: number): number {
//|     if (b === 0) throw new Error("division by zero");
//|     return a / b;
//| }
import { divide } from "/data/helper.ts";
console.log(divide(4, 2));
divide(1, 0);

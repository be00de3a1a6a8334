enum Color { Red, Green = "green", Blue = 5 }
const enum Small { One = 1 }
namespace Space { export const inner = 7; }
abstract class Shape { abstract area(): number; }
class Square extends Shape { constructor(readonly side: number) { super(); } area() { return this.side ** 2; } }
type Pair<T> = { [K in keyof T]: T[K] } & { readonly x?: unique symbol extends symbol ? 1 : 2 };
let value = <any>5 as unknown as Pair<{ x: 1 }>;
function overloaded(a: string): string;
function overloaded(a: number): number;
function overloaded(a: any) { return a satisfies any; }
console.log(Color, Small.One, Space.inner, new Square(3).area(), value!, overloaded(1), (x: number, ...rest: string[]) => x);

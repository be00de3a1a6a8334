export type A = { a: string };
export interface B extends A { b: number }
declare const nothing: B;

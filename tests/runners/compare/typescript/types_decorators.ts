function logged(target: any, context: any) {
    console.log("decorating", String(context?.name ?? context));
    return target;
}
class C {
    @logged method() { return 1; }
    accessor value = 5;
    static { console.log("static block"); }
    #secret = 3;
    reveal() { return this.#secret; }
}
console.log(new C().method(), new C().value, new C().reveal());

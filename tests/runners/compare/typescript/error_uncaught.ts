interface Thing {
    name: string;
}

function fail(thing: Thing): never {
    throw new Error("bad " + thing.name);
}

console.log("before");
fail({ name: "thing" });

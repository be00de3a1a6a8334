// file: bunfig.toml
//| preload = ["/data/setup.ts"]
//| [define]
//| MADE_UP = "'defined'"
// file: setup.ts
//| console.log("the user's own preload");
// new: started preloaded
// @ts-ignore
console.log(typeof MADE_UP);

// env: BUN_CONFIG_VERBOSE_FETCH=0
// env: NO_COLOR=1
// env: FORCE_COLOR=1
// either: started preloaded
console.log({ a: 1 });
console.log(Bun.enableANSIColors);

// either: started
// env: NAME=a value
// env: EMPTY=
// env: UNICODE=ä日
// env: MULTI=a\nb=c
for (const name of Object.keys(process.env).sort()) console.log(name, JSON.stringify(process.env[name]), Bun.env[name] === import.meta.env[name]);
console.log("NAME" in process.env, delete process.env.NAME, process.env.NAME);
process.env.ADDED = "x";
console.log(Bun.spawnSync(["sh", "-c", "echo $ADDED $NAME $EMPTY; env | grep -c LD_PRELOAD"]).stdout.toString());

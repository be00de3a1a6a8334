import { $ } from "bun";
console.log(await $`echo ${"a b"} | tr a-z A-Z`.text());
const { exitCode, stderr } = await $`ls /nowhere`.nothrow().quiet();
console.log(exitCode, stderr.toString());

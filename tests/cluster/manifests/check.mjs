// The Kubernetes manifests that are named, against the schemas of their API: prints "ok" or "FAILED" for each object.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, ...paths] = process.argv.slice(2); // where npm has put the packages
const require = createRequire(`${folder}/package.json`);
const yaml = require("js-yaml");

// The schemas take members that they do not know; these objects may have no others.
const known = {
  rollingUpdate: ["maxSurge", "maxUnavailable"],
  securityContext: ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities", "sysctls"],
};

function* misspelt(value, path = "") {
  if (value === null || typeof value !== "object") return;
  for (const [name, member] of Object.entries(value)) {
    for (const inner of known[name] ? Object.keys(member) : [])
      if (!known[name].includes(inner)) yield `${path}/${name}/${inner} is not known`;
    yield* misspelt(member, `${path}/${name}`);
  }
}

function problemOf(object) {
  const { [object.kind]: Model } = require(`kubernetes-models/${object.apiVersion}/${object.kind}`);
  try {
    new Model(object).validate();
  } catch (error) {
    return error.message;
  }
  return [...misspelt(object)].join("; ");
}

let wrong = 0;
for (const path of paths) {
  for (const object of yaml.loadAll(readFileSync(path, "utf8"))) {
    const problem = problemOf(object);
    wrong += problem !== "";
    console.log(problem ? `FAILED ${object.kind} ${object.metadata.name}: ${problem}` : `ok ${object.kind} ${object.metadata.name}`);
  }
}
process.exit(wrong ? 1 : 0);

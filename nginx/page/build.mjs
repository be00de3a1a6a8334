// Bundles the page: node build.mjs FOLDER MODULES, where MODULES is the node_modules that package-lock.json describes.
// The names of all files but index.html hold a hash of their content, so that browsers may keep them for ever.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [target, modules] = process.argv.slice(2);
if (!modules) throw new Error("usage: node build.mjs FOLDER MODULES");
const fresh = `${target}.new`;
const { build } = createRequire(join(modules, "here.js"))("esbuild");

async function put(name, content) {
  await writeFile(join(fresh, name), content);
  if (content.length > 200) await writeFile(join(fresh, `${name}.gz`), gzipSync(content, { level: 9 }));
}

/** Puts a file under a name with its hash. */
async function putHashed(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 10);
  const hashed = `page/${basename(name, extname(name))}-${hash}${extname(name)}`;
  await put(hashed, content);
  return hashed;
}

await rm(fresh, { recursive: true, force: true });
await mkdir(join(fresh, "page"), { recursive: true });
const names = { "icon.svg": await putHashed("icon.svg", await readFile(join(here, "icon.svg"))) };
const { metafile, outputFiles } = await build({
  absWorkingDir: here, entryPoints: ["src/main.js", "style.css"], bundle: true, splitting: true, format: "esm", minify: true, target: ["chrome123", "firefox120", "safari17.5"],
  entryNames: "[name]-[hash]", chunkNames: "part-[hash]", outdir: "page", write: false, metafile: true, legalComments: "eof", charset: "utf8", nodePaths: [modules], logLevel: "warning",
});
for (const file of outputFiles) await put(`page/${basename(file.path)}`, Buffer.from(file.contents));
for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) if (entryPoint) names[basename(entryPoint)] = `page/${basename(path)}`;
const html = (await readFile(join(here, "index.html"), "utf8")).replace(/\{\{(.+?)\}\}/g, (_, name) => names[name]);
await put("index.html", Buffer.from(html));
await rm(target, { recursive: true, force: true });
await rename(fresh, target);

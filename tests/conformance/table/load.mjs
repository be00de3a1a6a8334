// Packages of folders other than this one.
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

// From the first of the folders that has it.
export function loader(folders) {
  const find = (name) => {
    for (const folder of folders) {
      try {
        return createRequire(path.join(folder, 'package.json')).resolve(name);
      } catch (problem) {
        if (problem.code !== 'MODULE_NOT_FOUND') throw problem;
      }
    }
    throw new Error(`${name} is in none of ${folders}`);
  };
  const load = (name) => import(pathToFileURL(find(name)));
  // A file of a package that it does not export.
  load.file = (name, file) => {
    for (const folder of folders) {
      const place = path.join(folder, 'node_modules', name, file);
      if (existsSync(place)) return place;
    }
    throw new Error(`${name}/${file} is in none of ${folders}`);
  };
  return load;
}

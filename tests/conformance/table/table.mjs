// What one client can do with a server, over each transport.
//   node table.mjs '{"client":NAME,"folders":[…],"servers":{"http":{"url":…,"token":…},"stdio":{"command":[…],"env":{…}}},"control":{…}}'
//   node table.mjs --names
// Prints one line of JSON for each cell: {"transport":…,"cell":…,"state":"ok"|"-"|"FAILED","why":…}. control are servers of
// the same places, asked by another client what became of a run.
import { agents } from './agents.mjs';
import { CELLS, cellsOf } from './cells.mjs';
import { commands } from './commands.mjs';
import { large } from './large.mjs';
import { loader } from './load.mjs';
import { sdks } from './sdks.mjs';

const small = [...sdks, ...commands, ...agents];
const TRANSPORTS = ['http', 'https', 'stdio'];

function print(transport, cell, state, why = '') {
  process.stdout.write(`${JSON.stringify({ transport, cell, state, why: why.replaceAll(/\s+/g, ' ').slice(0, 300) })}\n`);
}

async function main() {
  const options = JSON.parse(process.argv[2]);
  const row = [...small, ...large].find((one) => one.name === options.client);
  const load = loader(options.folders);
  await Promise.all(TRANSPORTS.map(async (transport) => {
    const context = { load, transport, ...options.servers[transport] };
    const control = { load, ...options.control[transport] };
    await cellsOf(row, context, control, (...cell) => print(transport, ...cell));
  }));
}

if (process.argv[2] === '--names') {
  const names = (rows) => rows.map((row) => ({ name: row.name, package: row.package }));
  console.log(JSON.stringify({ cells: CELLS, small: names(small), large: names(large) }));
} else {
  await main();
  process.exit(0);
}

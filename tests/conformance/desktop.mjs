// A desktop client's first session with "sandcgi stdio" in an empty home: no settings, a file that comes back as a local path.
//   node desktop.mjs '{"folder":…,"command":[…],"env":{"HOME":…}}'
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { check, failures, short, step } from './steps.mjs';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');

const client = new Client({ name: 'sandcgi-tests', version: '1.0.0' });
const state = path.join(options.env.HOME, '.local/state/sandcgi');
const [command, ...args] = options.command;

await step('connect', () => client.connect(new StdioClientTransport({ command, args, env: options.env, stderr: 'ignore', cwd: '/' })));
await step('settings of one\'s own', async () => {
  check((statSync(path.join(state, 'sandcgi.env')).mode & 0o777) === 0o600, 'the mode of sandcgi.env');
});
await step('tools/list', async () => {
  const { tools } = await client.listTools();
  check(tools.some((tool) => tool.name === 'run_code'), 'no run_code');
});
await step('a run and its file', async () => {
  const result = await client.callTool({ name: 'run_code', arguments: { language: 'python', code: "open('made.txt', 'w').write('made')" } });
  const url = JSON.stringify(result.content).match(/file:[^\s")\]\\]+/)?.[0];
  check(!result.isError && url, short(result));
  check(fileURLToPath(url).startsWith(state), url);
  check(readFileSync(fileURLToPath(url), 'utf8') === 'made', `what is at ${url}`);
});
await step('end', () => client.close());
process.exit(failures() ? 1 : 0);

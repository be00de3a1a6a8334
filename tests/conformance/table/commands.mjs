// Clients that are commands: each call is a process and a connection of its own.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

export const ENDS = 'the end of a connection cancels nothing before 2026-07-28';
const LACKS = { progress: 'shows none', 'cancel http': ENDS, 'cancel https': ENDS };
const run = promisify(execFile);

// What the command printed, with an empty home so that nobody's settings matter. To cancel is to press Ctrl-C.
async function output(home, args, signal) {
  const done = await run(process.execPath, args, {
    cwd: home, env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, NO_COLOR: '1' }, maxBuffer: 1 << 26, timeout: 60_000, signal, killSignal: 'SIGINT',
  }).catch((problem) => {
    throw new Error(`exit ${problem.code}: ${problem.stderr || problem.stdout || problem.message}`);
  });
  return done.stdout;
}

// The servers of a configuration file, in the form that desktop clients share.
async function configured({ command, env, url, token }, extra) {
  const home = await mkdtemp(path.join(os.tmpdir(), 'sandcgi-client-'));
  const server = command ? { command: command[0], args: command.slice(1), env }
    : { url, headers: { Authorization: `Bearer ${token}` }, ...extra };
  const config = path.join(home, 'mcp.json');
  await writeFile(config, JSON.stringify({ mcpServers: { sandbox: server } }), { mode: 0o600 });
  return { home, config, close: () => rm(home, { recursive: true, force: true }) };
}

// ---- Inspector ----

// Its first generation takes headers for HTTP from the command line, and a server over stdio from a file.
async function openInspectorOld(context) {
  const { home, config, close } = await configured(context, { type: 'streamable-http' });
  const cli = context.load.file('inspector-old', 'cli/build/cli.js');
  const place = context.command ? ['--config', config, '--server', 'sandbox']
    : [context.url, '--transport', 'http', '--header', `Authorization: Bearer ${context.token}`];
  const ask = async (rest, signal) => JSON.parse(await output(home, [cli, '--cli', ...place, ...rest], signal));
  return inspectorSession(ask, close, (args) => Object.entries(args).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`]));
}

const openInspectorNew = (era) => async (context) => {
  const { home, config, close } = await configured(context, { type: 'streamable-http' });
  const cli = context.load.file('@modelcontextprotocol/inspector', 'clients/launcher/build/index.js');
  const place = ['--config', config, '--server', 'sandbox', '--protocol-era', era, '--quiet'];
  const ask = async (rest, signal) => JSON.parse(await output(home, [cli, '--cli', ...place, ...rest], signal));
  return inspectorSession(ask, close, (args) => ['--tool-args-json', JSON.stringify(args)]);
};

// The list is the connection's test, too: a command has no other.
async function inspectorSession(ask, close, argsOf) {
  const { tools } = await ask(['--method', 'tools/list']);
  return {
    list: async () => tools.map((one) => one.name),
    call: (name, args, { signal } = {}) => ask(['--method', 'tools/call', '--tool-name', name, ...argsOf(args)], signal),
    close,
  };
}

// ---- mcporter ----

async function openMcporter(context) {
  const { home, config, close } = await configured(context, { allowHttp: true });
  const cli = context.load.file('mcporter', 'dist/cli.js');
  const ask = (rest, signal) => output(home, [cli, '--config', config, ...rest], signal);
  const listed = JSON.parse(await ask(['list', 'sandbox', '--json']));
  return {
    list: async () => listed.tools.map((one) => one.name),
    call: async (name, args, { signal } = {}) => {
      const images = await mkdtemp(path.join(home, 'images-'));
      const told = await ask(['call', `sandbox.${name}`, '--args', JSON.stringify(args), '--save-images', images], signal);
      const files = await Promise.all((await readdir(images)).map((one) => readFile(path.join(images, one), 'base64')));
      return [{ type: 'text', told }, ...files.map((image) => ({ image }))];
    },
    close,
  };
}

const INSPECTOR = '@modelcontextprotocol/inspector';

export const commands = [
  { name: 'Inspector 0.x', package: 'inspector-old', open: openInspectorOld, lacks: { ...LACKS, 'cancel stdio': 'ended, it leaves its child' } },
  { name: 'Inspector 2.x legacy', package: INSPECTOR, open: openInspectorNew('legacy'), lacks: LACKS },
  { name: 'Inspector 2.x auto', package: INSPECTOR, open: openInspectorNew('auto'), lacks: { progress: LACKS.progress } },
  { name: 'mcporter', package: 'mcporter', open: openMcporter, lacks: LACKS },
];

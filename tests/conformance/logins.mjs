// Programs that log in through a person's browser: the suite's scenarios of authorization servers, mcp-remote, the Inspector.
//   node logins.mjs '{"program":…,"folder":…,"table":…,"url":…,"issuer":…,"answers":{FIELD:TEXT,…}}'
// Prints "ok STEP" or "FAILED STEP: why" for each step, and ends with 1 when one failed.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { visit } from './browser.mjs';
import { check, failures, step, until } from './steps.mjs';

const options = JSON.parse(process.argv[2]);
const WAIT_MS = 40_000;
// None of them opens a browser: they print the address that they would open.
const environment = { ...process.env, BROWSER: 'true', MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file', MCP_REMOTE_CONFIG_DIR: path.join(process.env.HOME, 'mcp-remote'), NO_COLOR: '1' };
const SUITE = path.join(options.folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const REMOTE = path.join(options.table, 'node_modules/mcp-remote/dist/proxy.js');
const INSPECTOR = path.join(options.table, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

async function freePort() {
  const probe = createServer();
  await new Promise((listens) => { probe.listen(0, '127.0.0.1', listens); });
  const { port } = probe.address();
  await new Promise((closed) => { probe.close(closed); });
  return port;
}

// Looks for the address of the page in what a program prints, answers the page, and opens what the browser is sent back to.
class Person {
  text = '';
  visits = 0;
  problem = null;

  reads(stream) {
    stream.setEncoding('utf8').on('data', (part) => {
      this.text += part;
      const [found] = this.text.slice(this.seen ?? 0).match(/https:\/\/\S+\/oauth\/authorize\?\S+(?=\s)/) ?? [];
      if (!found) return;
      this.seen = this.text.length;
      this.goes(new URL(found)).catch((problem) => { this.problem = problem; });
    });
  }

  async goes(url) {
    this.visits += 1;
    const back = await visit(url, options.answers, url.searchParams.get('redirect_uri'));
    const answer = await fetch(back);
    check(answer.ok, `the program's page at ${back.pathname}: ${answer.status}`);
  }
}

// Runs a program to its end. { status, text, visits }
async function ran(...command) {
  const person = new Person();
  const child = spawn(process.execPath, command, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  person.reads(child.stdout);
  person.reads(child.stderr);
  let status = null;
  child.on('close', (code) => { status = code ?? 'a signal'; });
  try {
    await until(() => status !== null || person.problem, WAIT_MS, `its end, after: ${person.text.slice(-600)}`);
  } finally {
    child.kill();
  }
  if (person.problem) throw person.problem;
  return { status, text: person.text, visits: person.visits };
}

async function registered(redirect) {
  const { registration_endpoint: endpoint } = await (await fetch(new URL('/.well-known/oauth-authorization-server', options.issuer))).json();
  const body = JSON.stringify({ client_name: 'The suite', redirect_uris: [redirect], token_endpoint_auth_method: 'none' });
  const answer = await fetch(endpoint, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  check(answer.status === 201, `registration: ${answer.status}`);
  return (await answer.json()).client_id;
}

const programs = {
  async suite() {
    await step('passes the scenarios of authorization servers', async () => {
      const port = await freePort();
      const client = await registered(`http://127.0.0.1:${port}/callback`);
      const { status, text, visits } = await ran(SUITE, 'authorization', '--url', options.issuer, '--resource', options.url, '--client-id', client, '--port', String(port));
      const summary = text.slice(text.indexOf('=== SUMMARY ==='));
      check(status === 0 && visits === 1, `status ${status}, ${visits} visits: ${text.slice(-600)}`);
      check(/✓ authorization-server-metadata-endpoint: 2 passed, 0 failed/.test(summary) && /✓ authorization-code-grant: 1 passed, 0 failed/.test(summary), summary);
    });
  },

  async remote() {
    const require = createRequire(path.join(options.folder, 'package.json'));
    const load = (name) => import(pathToFileURL(require.resolve(name)));
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
    const port = await freePort();
    const session = async (visits) => {
      const person = new Person();
      const transport = new StdioClientTransport({ command: process.execPath, args: [REMOTE, options.url, String(port)], env: environment, stderr: 'pipe' });
      person.reads(transport.stderr);
      const client = new Client({ name: 'sandcgi-tests', version: '1.0.0' }, { capabilities: {} });
      try {
        await client.connect(transport, { timeout: WAIT_MS });
        const result = await client.callTool({ name: 'run_code', arguments: { language: 'bash', code: 'echo $((6 * 7))' } });
        check(JSON.stringify(result.content).includes('42'), JSON.stringify(result));
      } catch (problem) {
        throw person.problem ?? new Error(`${problem.message}, after: ${person.text.slice(-600)}`);
      } finally {
        await client.close();
      }
      check(person.visits === visits, `${person.visits} visits`);
    };
    await step('logs in, and runs a program', () => session(1));
    await step('keeps its login', () => session(0));
  },

  async inspector() {
    const call = [INSPECTOR, '--cli', '--server-url', options.url, '--transport', 'http', '--callback-url', `http://127.0.0.1:${await freePort()}/oauth/callback`,
      '--method', 'tools/call', '--tool-name', 'run_code', '--tool-arg', 'language=bash', 'code=echo $((6 * 7))'];
    for (const [name, visits, ...more] of [['logs in, and runs a program', 1], ['keeps its login', 0, '--stored-auth-only']]) {
      await step(name, async () => {
        const found = await ran(...call, ...more);
        check(found.status === 0 && found.text.includes('42') && found.visits === visits, `status ${found.status}, ${found.visits} visits: ${found.text.slice(-600)}`);
      });
    }
  },
};

await programs[options.program]();
process.exit(failures() ? 1 : 0);

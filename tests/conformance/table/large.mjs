// Agents that are programs of their own, each with a model service of ours: it has them call the tool once, and keeps
// what they send next.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { ENDS } from './commands.mjs';
import { dialects } from './dialects.mjs';

const ASK = 'Go on.';

async function bodyOf(request) {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text && text.startsWith('{') ? JSON.parse(text) : {};
}

// A reply to one request. script is {toolName, args}, or nothing while the tools are listed; seen takes what is learnt.
function replyTo(dialect, body, script, seen) {
  const tools = dialect.tools(body);
  const answers = dialect.answers(body);
  if (tools.length > (seen.tools ?? []).length) seen.tools = tools;
  if (answers.length) seen.answers = answers;
  const tool = script && tools.find((one) => one.name.endsWith(script.toolName));
  return tool && !answers.length ? dialect.call(tool, script.args) : dialect.say('Done.');
}

async function startService() {
  const service = { script: null, seen: {} };
  const server = http.createServer(async (request, response) => {
    const dialect = dialects.find((one) => one.matches(request.url));
    const body = await bodyOf(request);
    response.writeHead(200, { 'content-type': dialect ? 'text/event-stream' : 'application/json' });
    response.end(dialect ? replyTo(dialect, body, service.script, service.seen) : '{"data":[],"models":[]}');
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  service.url = `http://127.0.0.1:${server.address().port}`;
  service.close = () => { server.closeAllConnections(); server.close(); };
  return service;
}

// One turn of the program, in a home of its own.
function turn({ command, args, env }, home, signal) {
  return new Promise((resolve, reject) => {
    const options = {
      cwd: home,
      env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home, CI: 'true', ...env },
      maxBuffer: 1 << 26, timeout: 55_000, signal, killSignal: 'SIGINT',
    };
    const child = execFile(command, args, options, (problem, out, err) => {
      if (problem) reject(new Error(`exit ${problem.code ?? problem.signal}: ${(err || out || problem.message).slice(-600)}`));
      else resolve(`${out}${err}`);
    });
    child.stdin.end();
  });
}

// prepare(context, home, service) writes settings and gives {command, args, env}.
const opener = (prepare) => async (context) => {
  const home = await mkdtemp(path.join(os.tmpdir(), 'sandcgi-client-'));
  const service = await startService();
  const program = await prepare(context, home, service.url);
  const ask = async (script, signal) => {
    Object.assign(service, { script, seen: {} });
    const told = await turn(program, home, signal);
    return { ...service.seen, told };
  };
  const close = async () => { service.close(); await rm(home, { recursive: true, force: true, maxRetries: 5 }); };
  const { tools, told } = await ask(null);
  if (!tools?.some((one) => one.name.endsWith('run_code'))) {
    await close();
    throw new Error(`its model is offered no run_code: ${told.slice(-600)}`);
  }
  return {
    list: async () => tools.map((one) => one.name),
    call: async (toolName, args, { signal } = {}) => {
      const { answers, told: said } = await ask({ toolName, args }, signal);
      if (!answers) throw new Error(`its model read no answer: ${said.slice(-600)}`);
      return answers;
    },
    close,
  };
};

const HEADERS = (token) => ({ Authorization: `Bearer ${token}` });
const toml = (object) => `{ ${Object.entries(object).map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`).join(', ')} }`;

async function prepareCodex({ load, command, env, url, token }, home, service) {
  const server = command ? [`command = ${JSON.stringify(command[0])}`, `args = ${JSON.stringify(command.slice(1))}`, `env = ${toml(env)}`]
    : [`url = ${JSON.stringify(url)}`, `http_headers = ${toml(HEADERS(token))}`];
  await writeFile(path.join(home, 'config.toml'), [
    'model = "scripted"', 'model_provider = "scripted"', '[model_providers.scripted]', 'name = "scripted"',
    `base_url = "${service}/v1"`, 'wire_api = "responses"', '[mcp_servers.sandbox]', ...server, ''].join('\n'), { mode: 0o600 });
  const cli = load.file('@openai/codex', 'bin/codex.js');
  return {
    command: process.execPath, env: { CODEX_HOME: home, SSL_CERT_FILE: process.env.NODE_EXTRA_CA_CERTS },
    args: [cli, 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ASK],
  };
}

async function prepareClaude({ load, command, env, url, token }, home, service) {
  const server = command ? { type: 'stdio', command: command[0], args: command.slice(1), env } : { type: 'http', url, headers: HEADERS(token) };
  const config = path.join(home, 'mcp.json');
  await writeFile(config, JSON.stringify({ mcpServers: { sandbox: server } }), { mode: 0o600 });
  return {
    command: load.file('@anthropic-ai/claude-code-linux-x64', 'claude'),
    args: ['-p', ASK, '--mcp-config', config, '--strict-mcp-config', '--allowedTools', 'mcp__sandbox'],
    env: {
      ANTHROPIC_BASE_URL: service, ANTHROPIC_API_KEY: 'scripted', ENABLE_TOOL_SEARCH: 'false',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1',
    },
  };
}

async function prepareGemini({ load, command, env, url, token }, home, service) {
  const server = command ? { command: command[0], args: command.slice(1), env } : { httpUrl: url, headers: HEADERS(token) };
  await mkdir(path.join(home, '.gemini'));
  await writeFile(path.join(home, '.gemini/settings.json'), JSON.stringify({
    mcpServers: { sandbox: { ...server, trust: true } }, security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false }, general: { disableAutoUpdate: true },
  }), { mode: 0o600 });
  return {
    command: process.execPath, args: [load.file('@google/gemini-cli', 'bundle/gemini.js'), '--yolo', '--skip-trust', '-m', 'gemini-2.5-pro', '-p', ASK],
    env: { GEMINI_API_KEY: 'scripted', GOOGLE_GEMINI_BASE_URL: service, GEMINI_CLI_NO_RELAUNCH: '1' },
  };
}

async function prepareOpencode({ load, command, env, url, token }, home, service) {
  const server = command ? { type: 'local', command, environment: env } : { type: 'remote', url, headers: HEADERS(token), oauth: false };
  const model = { name: 'scripted', tool_call: true, attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } };
  const provider = { npm: '@ai-sdk/openai-compatible', options: { baseURL: `${service}/v1`, apiKey: 'scripted' }, models: { scripted: model } };
  await writeFile(path.join(home, 'opencode.json'), JSON.stringify({
    model: 'scripted/scripted', autoupdate: false, share: 'disabled', permission: 'allow',
    mcp: { sandbox: { ...server, enabled: true } }, provider: { scripted: provider },
  }), { mode: 0o600 });
  return {
    command: load.file('opencode-linux-x64', 'bin/opencode'), args: ['run', ASK],
    env: { OPENCODE_CONFIG: path.join(home, 'opencode.json'), OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
  };
}

const NO_PROGRESS = 'shows it to its user, if at all';
const LACKS = { progress: NO_PROGRESS, 'cancel http': ENDS, 'cancel https': ENDS };

export const large = [
  { name: 'Codex', package: '@openai/codex', open: opener(prepareCodex), lacks: { ...LACKS, https: 'takes no certificate that signed itself' } },
  { name: 'Claude Code', package: '@anthropic-ai/claude-code', open: opener(prepareClaude), lacks: { progress: NO_PROGRESS } },
  { name: 'Gemini CLI', package: '@google/gemini-cli', open: opener(prepareGemini), lacks: LACKS },
  { name: 'opencode', package: 'opencode-linux-x64', open: opener(prepareOpencode), lacks: LACKS },
];

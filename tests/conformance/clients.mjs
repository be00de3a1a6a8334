// One real session of an official SDK client, step by step.
//   node clients.mjs '{"folder":…,"sdk":"v1"|"v2","mode":"legacy"|"auto"|"2026-07-28","url":…,"token":…}'
//   node clients.mjs '{… "command":[…],"env":{…}}'          over stdio
// Prints "ok STEP" or "FAILED STEP: why" for each step, and ends with 1 when one failed.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, failures, pause, short, step, until } from './steps.mjs';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const NAME = { name: 'sandcgi-tests', version: '1.0.0' };
const conversation = `client-${process.pid}-${Date.now().toString(36)}`;
const session = { asked: [], decision: 'accept', updated: [] };

// The user of these clients: accepts or declines, as the step says.
function answerElicitation(request) {
  session.asked.push(request.params);
  if (session.decision !== 'accept') return { action: session.decision };
  const content = {};
  for (const [name, property] of Object.entries(request.params.requestedSchema?.properties ?? {})) {
    if (property.type === 'boolean') content[name] = true;
    else if (property.enum) content[name] = property.enum[0];
    else if (property.oneOf) content[name] = property.oneOf[0].const;
    else if (property.type === 'string') content[name] = 'yes';
    else content[name] = property.minimum ?? 1;
  }
  return { action: 'accept', content };
}

const httpOptions = () => ({ requestInit: { headers: { Authorization: `Bearer ${options.token}` } } });
const stdioOptions = () => ({ command: options.command[0], args: options.command.slice(1), env: options.env, stderr: 'ignore' });

// Both SDKs behind the few calls that the steps need.
async function makeV1() {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const types = await load('@modelcontextprotocol/sdk/types.js');
  const client = new Client(NAME, { capabilities: { elicitation: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, async (request) => answerElicitation(request));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (note) => session.updated.push(note.params.uri));
  const makeTransport = async () => {
    if (options.command) {
      const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
      return new StdioClientTransport(stdioOptions());
    }
    const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return new StreamableHTTPClientTransport(new URL(options.url), httpOptions());
  };
  return {
    client,
    connect: async () => client.connect(await makeTransport()),
    call: (params, more) => client.callTool(params, undefined, more),
    watch: async (uri) => client.subscribeResource({ uri }),
    revision: () => client.transport?.protocolVersion,
  };
}

async function makeV2() {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  const mode = ['legacy', 'auto'].includes(options.mode) ? options.mode : { pin: options.mode };
  const client = new Client(NAME, { capabilities: { elicitation: {} }, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', async (request) => answerElicitation(request));
  client.setNotificationHandler('notifications/resources/updated', (note) => session.updated.push(note.params.uri));
  return {
    client,
    connect: async () => client.connect(
      options.command ? new StdioClientTransport(stdioOptions()) : new StreamableHTTPClientTransport(new URL(options.url), httpOptions())),
    call: (params, more) => client.callTool(params, more),
    watch: async (uri) => {
      if (client.getProtocolEra() !== 'modern') return client.subscribeResource({ uri });
      session.listening = await client.listen({ resourceSubscriptions: [uri] });
      return session.listening;
    },
    revision: () => client.getNegotiatedProtocolVersion(),
  };
}

const one = options.sdk === 'v1' ? await makeV1() : await makeV2();
const { client } = one;

async function tool(name, args, more) {
  const result = await one.call({ name, arguments: args }, more);
  check(!result.isError, `${name}: ${short(result.content)}`);
  check(result.structuredContent, `${name} without structuredContent: ${short(result)}`);
  return result.structuredContent;
}

const run = (language, code, rest = {}, more) =>
  tool('run_code', { conversationId: conversation, language, code, ...rest }, more);

async function ran(language, code, want, rest, more) {
  const result = await run(language, code, rest, more);
  check(result.status === 'ok', `status ${result.status}: ${short(result)}`);
  check(result.stdout.trim() === want, `stdout is ${short(result.stdout)}`);
  return result;
}

// Without a session resources/list offers nothing: a modern client knows the name from the template.
async function findResource(name) {
  if (one.revision() >= '2026-07-28') return { uri: `sandbox://${conversation}/${name}` };
  let cursor;
  for (let page = 0; page < 50; page += 1) {
    const { resources, nextCursor } = await client.listResources(cursor ? { cursor } : undefined);
    const found = resources.find((r) => r.uri.includes(conversation) && r.uri.endsWith(`/${name}`));
    if (found) return found;
    if (!nextCursor) break;
    cursor = nextCursor;
  }
  throw new Error(`resources/list has no ${name} of this conversation`);
}

async function connect() {
  await one.connect();
  const info = client.getServerVersion();
  check(info?.name === 'sandcgi', `serverInfo is ${short(info)}`);
  const revision = one.revision();
  const modern = options.sdk === 'v2' && options.mode !== 'legacy';
  check(!revision || (revision >= '2026-07-28') === modern, `revision ${revision}`);
}

async function lists() {
  const { tools } = await client.listTools();
  for (const name of ['upload_file', 'run_code', 'list_runners']) check(tools.some((t) => t.name === name), `no tool ${name}`);
  const { prompts } = await client.listPrompts();
  check(Array.isArray(prompts), 'no prompts array');
  const { resourceTemplates } = await client.listResourceTemplates();
  check(Array.isArray(resourceTemplates), 'no resourceTemplates array');
}

async function upload() {
  const content = Buffer.from('name,value\na,1\nb,2\n').toString('base64');
  const result = await tool('upload_file', { conversationId: conversation, filename: 'data.csv', content });
  check(result.file?.size === 19, `answer is ${short(result)}`);
}

async function readResource() {
  const resource = await findResource('data.csv');
  const { contents } = await client.readResource({ uri: resource.uri });
  check(contents.length === 1 && contents[0].text === 'name,value\na,1\nb,2\n', `contents are ${short(contents)}`);
}

async function hearOfChange() {
  const { uri } = await findResource('data.csv');
  await one.watch(uri);
  await pause(300); // a legacy client does not wait for its GET stream
  await ran('bash', 'echo c,3 >> data.csv; echo done', 'done');
  await until(() => session.updated.includes(uri), 5000, 'notifications/resources/updated');
  await session.listening?.close();
}

async function progress() {
  const seen = [];
  await ran('bash', 'sleep 2; echo done', 'done', {}, { onprogress: (p) => seen.push(p.progress), resetTimeoutOnProgress: true });
  check(seen.length > 0, 'no progress was reported');
  check(seen.every((p, i) => i === 0 || p > seen[i - 1]), `progress does not increase: ${seen}`);
}

// The container must be gone soon after; the caller looks at the engine for a sleep of this many seconds.
async function cancel() {
  const controller = new AbortController();
  const pending = run('bash', 'sleep 77', {}, { signal: controller.signal, timeout: 60_000 }).then(
    (result) => `answered ${short(result)}`, () => null);
  await pause(1500);
  const start = Date.now();
  controller.abort();
  const answer = await pending;
  check(answer === null, `the call was not cancelled but ${answer}`);
  // A server that goes on with the cancelled run would answer the next call late.
  await ran('bash', 'echo still here', 'still here');
  check(Date.now() - start < 10_000, `cancelling and another run took ${Date.now() - start} ms`);
}

async function consent() {
  session.asked.length = 0;
  session.decision = 'accept';
  await ran('bash', 'echo with network', 'with network', { network: true });
  check(session.asked.length === 1, `the user was asked ${session.asked.length} times`);
  check(session.asked[0].message, 'the question has no message');
}

async function refusal() {
  session.asked.length = 0;
  session.decision = 'decline';
  const result = await one.call({ name: 'run_code', arguments: { conversationId: conversation, language: 'bash', code: 'echo no', network: true } });
  check(session.asked.length === 1, `the user was asked ${session.asked.length} times`);
  check(result.isError === true, `declined, but ${short(result)}`);
  session.decision = 'accept';
}

await step('connects', connect);
if (failures() === 0) {
  await step('lists tools, prompts and templates', lists);
  await step('uploads a file', upload);
  await step('runs python', () => ran('python', "import pandas as pd; print(pd.read_csv('data.csv')['value'].sum())", '3'));
  await step('runs typescript', () => ran('typescript', "const n: number = 6; console.log(n * 7)", '42'));
  await step('reads a resource', readResource);
  await step('hears of a changed resource', hearOfChange);
  await step('hears of progress', progress);
  await step('cancels a run', cancel);
  await step('is asked for consent and gives it', consent);
  await step('is asked for consent and declines', refusal);
}
await step('closes', () => client.close());
process.exit(failures() ? 1 : 0);

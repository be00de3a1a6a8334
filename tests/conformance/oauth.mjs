// The whole OAuth flow of an official SDK client: discovery, registration, PKCE, the page, tokens, refresh, step-up, revocation.
//   node oauth.mjs '{"folder":…,"sdk":"v1"|"v2","url":…,"issuer":…,"answers":{FIELD:TEXT,…}}'     answers: what the person types
// Prints "ok STEP" or "FAILED STEP: why" for each step, and ends with 1 when one failed.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { visit } from './browser.mjs';
import { check, failures, short, step, until } from './steps.mjs';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const REDIRECT = 'http://127.0.0.1:33418/callback';
// What a program keeps, and the SDKs ask for.
const kept = { scopes: [], visits: 0 };
const provider = {
  get redirectUrl() { return REDIRECT; },
  get clientMetadata() { return { client_name: 'The SDK', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' }; },
  state: () => 'a state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  invalidateCredentials: (what) => { if (['all', 'tokens'].includes(what)) kept.tokens = undefined; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
  redirectToAuthorization: async (url) => {
    kept.visits += 1;
    kept.scopes.push(url.searchParams.get('scope'));
    kept.asked = url;
    kept.back = await visit(url, options.answers, REDIRECT);
  },
};

const sdk = options.sdk === 'v1'
  ? { ...await load('@modelcontextprotocol/sdk/client/index.js'), ...await load('@modelcontextprotocol/sdk/client/streamableHttp.js') }
  : await load('@modelcontextprotocol/client');
let one;
const call = (name, args) => one.client.callTool({ name, arguments: args });

async function connect() {
  const client = new sdk.Client({ name: 'sandcgi-tests', version: '1.0.0' }, { capabilities: {} });
  const transport = new sdk.StreamableHTTPClientTransport(new URL(options.url), { authProvider: provider });
  one = { client, transport };
  await client.connect(transport);
}

// The client gives up with an error when the browser is opened, and goes on with what came back.
async function finish() {
  const back = kept.back.searchParams;
  check(back.get('state') === 'a state' && back.get('iss') === options.issuer, `what came back: ${back}`);
  if (options.sdk === 'v1') await one.transport.finishAuth(back.get('code'));
  else await one.transport.finishAuth(back);
}

const problem = (promise) => promise.then(() => null, (error) => error);

await step('is sent to the person', async () => {
  const error = await problem(connect());
  check(error && kept.visits === 1, `connecting without tokens: ${error}, ${kept.visits} visits`);
  check(kept.client?.client_id, 'the client has not registered');
  check(kept.asked.searchParams.get('code_challenge_method') === 'S256', 'PKCE');
  check(kept.asked.searchParams.get('resource') === options.url, `resource is ${kept.asked.searchParams.get('resource')}`);
});
if (failures() === 0) {
  await step('gets tokens for the code', async () => {
    await finish();
    check(kept.tokens.access_token.split('.').length === 3 && kept.tokens.refresh_token, `tokens are ${Object.keys(kept.tokens)}`);
  });
  await step('lists tools and runs a program', async () => {
    await connect();
    const { tools } = await one.client.listTools();
    check(tools.some((tool) => tool.name === 'run_code'), short(tools.map((tool) => tool.name)));
    const result = await call('run_code', { language: 'bash', code: 'echo $((6 * 7))' });
    check(!result.isError && JSON.stringify(result.content).includes('42'), short(result));
    check(kept.visits === 1, `${kept.visits} visits`);
  });
  await step('refreshes an access token that does not count any more', async () => {
    const before = kept.tokens;
    kept.tokens = { ...before, access_token: `${before.access_token.slice(0, -8)}AAAAAAAA` };
    await one.client.listTools();
    check(kept.tokens.refresh_token !== before.refresh_token && kept.tokens.access_token !== before.access_token, 'the tokens are others');
    check(kept.visits === 1, `${kept.visits} visits`);
  });
  await step('asks for a further scope when a call needs it', async () => {
    // SDK 1.x refreshes instead, which brings no further scope.
    if (options.sdk === 'v1') kept.tokens = { ...kept.tokens, refresh_token: undefined };
    const error = await problem(call('list_runs', {}));
    check(error && kept.visits === 2, `list_runs without admin: ${error}, ${kept.visits} visits`);
    check(/\badmin\b/.test(kept.scopes[1]), `scope is ${kept.scopes[1]}`);
    await finish();
    const result = await call('list_runs', {});
    check(!result.isError, short(result));
  });
  await step('has to ask again after its grant is revoked', async () => {
    const { revocation_endpoint: endpoint } = await (await fetch(new URL('/.well-known/oauth-authorization-server', options.issuer))).json();
    const status = async () => (await fetch(options.url, { method: 'POST', headers: { authorization: `Bearer ${kept.tokens.access_token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' })).status;
    check(await status() !== 401, 'the token counts before');
    const body = new URLSearchParams({ token: kept.tokens.refresh_token, client_id: kept.client.client_id });
    check((await fetch(endpoint, { method: 'POST', body })).status === 200, 'revocation');
    // Other issuers' access tokens count until they end.
    if (options.answers.passphrase) await until(async () => await status() === 401, 20_000, 'the token is refused');
    else kept.tokens = { ...kept.tokens, access_token: `${kept.tokens.access_token.slice(0, -8)}AAAAAAAA` };
    const visits = kept.visits;
    await problem(one.client.listTools());
    check(kept.visits === visits + 1, `${kept.visits} visits`);
  });
}
process.exit(failures() ? 1 : 0);

// The official SDKs' clients, alone and behind a bridge.
const NAME = { name: 'sandcgi-tests', version: '1.0.0' };

const headersOf = (server) => ({ Authorization: `Bearer ${server.token}` });
const httpOptions = (server) => ({ requestInit: { headers: headersOf(server) } });
const stdioOptions = ({ command, env }) => ({ command: command[0], args: command.slice(1), env, stderr: 'ignore' });

async function session(client, call) {
  return {
    list: async () => (await client.listTools()).tools.map((one) => one.name),
    call: (name, args, { signal, onProgress } = {}) => call({ name, arguments: args }, { signal, onprogress: onProgress }),
    close: () => client.close(),
  };
}

export async function openV1({ load, ...server }) {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client(NAME);
  await client.connect(server.command ? new StdioClientTransport(stdioOptions(server))
    : new StreamableHTTPClientTransport(new URL(server.url), httpOptions(server)));
  return session(client, (params, more) => client.callTool(params, undefined, more));
}

async function openV2({ load, ...server }, mode) {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  const client = new Client(NAME, { versionNegotiation: { mode } });
  await client.connect(server.command ? new StdioClientTransport(stdioOptions(server))
    : new StreamableHTTPClientTransport(new URL(server.url), httpOptions(server)));
  return session(client, (params, more) => client.callTool(params, more));
}

// mcp-remote as a desktop client starts it, with the header as our README has it.
function bridged(open) {
  return ({ load, url, token }) => open({
    load,
    command: [process.execPath, load.file('mcp-remote', 'dist/proxy.js'), url, '--header', 'Authorization:${AUTH}'],
    env: { ...process.env, AUTH: `Bearer ${token}` },
  });
}

const IS_STDIO = 'its own client speaks stdio to it';

export const sdks = [
  { name: 'SDK 1.x', package: '@modelcontextprotocol/sdk', open: openV1 },
  { name: 'SDK 2.x legacy', package: '@modelcontextprotocol/client', open: (context) => openV2(context, 'legacy') },
  { name: 'SDK 2.x auto', package: '@modelcontextprotocol/client', open: (context) => openV2(context, 'auto') },
  { name: 'SDK 2.x pinned', package: '@modelcontextprotocol/client', open: (context) => openV2(context, { pin: '2026-07-28' }) },
  { name: 'mcp-remote (SDK 1.x)', package: 'mcp-remote', open: bridged(openV1), lacks: { stdio: IS_STDIO } },
  {
    name: 'mcp-remote (SDK 2.x)',
    package: 'mcp-remote',
    open: bridged((context) => openV2(context, 'auto')),
    lacks: { stdio: IS_STDIO, cancel: 'the bridge leaves the stream open, whose end is what cancels in 2026-07-28' },
  },
];

// A reverse proxy that adds an Authorization header, for clients that cannot send one.
//   node proxy.mjs TARGET TOKEN     prints "PORT" and serves until it is ended or its standard input closes
// Bodies stream both ways, and a client that leaves takes its request with it. A Host or Origin that names the proxy
// becomes the target's; any other passes through, since probes for DNS rebinding send those.
import http from 'node:http';
import https from 'node:https';

const [target, token] = [new URL(process.argv[2]), process.argv[3]];
const client = target.protocol === 'https:' ? https : http;
const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'authorization']);

// Pairs of name and value in their order and case; change(name, value) gives the new value, null drops the pair.
function mapHeaders(raw, change) {
  const out = [];
  for (let i = 0; i < raw.length; i += 2) {
    const value = change(raw[i].toLowerCase(), raw[i + 1]);
    if (value !== null) out.push(raw[i], value);
  }
  return out;
}

function requestHeaders(request) {
  const mine = `127.0.0.1:${server.address().port}`;
  const headers = mapHeaders(request.rawHeaders, (name, value) => {
    if (hopByHop.has(name)) return null;
    if (name === 'host' && value === mine) return target.host;
    if (name === 'origin' && value === `http://${mine}`) return target.origin;
    return value;
  });
  return [...headers, 'Authorization', `Bearer ${token}`];
}

function pass(request, response) {
  const upstream = client.request(
    { host: target.hostname, port: target.port, path: request.url, method: request.method, headers: requestHeaders(request), agent: false },
    (answer) => {
      response.writeHead(answer.statusCode, answer.statusMessage,
        mapHeaders(answer.rawHeaders, (name, value) => (hopByHop.has(name) ? null : value)));
      response.flushHeaders();
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
  upstream.on('error', (problem) => {
    if (!response.headersSent) response.writeHead(502);
    response.end(`proxy: ${problem.message}`);
  });
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
}

const server = http.createServer({ keepAliveTimeout: 60000 }, pass);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();

// A client of MCP, revision 2026-07-28, at the place for programs.
import { at } from "./place.js";

const REVISION = "2026-07-28";
const META = "io.modelcontextprotocol/";
const RETRIES = 3; // of calls that came too fast

/** kind: token, rate, away, busy, argument, failed, cancelled; message says what to do. */
export class CallError extends Error {
  constructor(kind, message, more = {}) {
    super(message);
    this.kind = kind;
    Object.assign(this, more);
  }
}

const client = { token: null, id: 0, onLost: () => {} };

export const setToken = (token) => { client.token = token; };
export const hasToken = () => client.token !== null;
export const theToken = () => client.token;
/** f(error) is called when a call finds the token wrong or the server away. */
export const onLost = (f) => { client.onLost = f; };

function body(method, params, progress) {
  const meta = { [`${META}protocolVersion`]: REVISION, [`${META}clientInfo`]: { name: "sandcgi-page", version: "1" }, [`${META}clientCapabilities`]: {} };
  if (progress) meta.progressToken = "p";
  client.id++;
  return JSON.stringify({ jsonrpc: "2.0", id: client.id, method, params: { ...params, _meta: meta } });
}

/** A header value of any text: MCP's form of what is not plain. */
function headerValue(text) {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

function headers(method, params) {
  const found = {
    "Content-Type": "application/json", Accept: "application/json, text/event-stream", Authorization: `Bearer ${client.token}`,
    "MCP-Protocol-Version": REVISION, "Mcp-Method": method,
  };
  if (params.name) found["Mcp-Name"] = headerValue(params.name);
  return found;
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(new CallError("cancelled", "Cancelled.")); }, { once: true });
});

function away(cause) {
  return new CallError("away", "The server cannot be reached. Check that it is running (./start.sh --status) and that you are online.", { cause });
}

const hasExpired = (answer) => /error_description="[^"]*expired/.test(answer.headers.get("WWW-Authenticate") ?? "");

/** The server's words for a status that is no success. */
async function refused(answer) {
  let said = "";
  try {
    said = (await answer.json()).error?.message ?? "";
  } catch { /* not ours */ }
  const { status } = answer;
  if (status === 401 && hasExpired(answer)) return new CallError("token", "This token has expired. Make a new one: sandcgi token add.");
  if (status === 401) return new CallError("token", "The server does not know this token. Check that it is whole, or make a new one: sandcgi token add.");
  if (status === 403) return new CallError("failed", `The server refuses this page's address: ${said || "add it to SANDCGI_ALLOWED_HOSTS and SANDCGI_ALLOWED_ORIGINS."}`);
  if (status === 413) return new CallError("argument", "This is larger than a call may be. Put large data in a file: drop it on the page.");
  if (status === 429) return new CallError("rate", "Too many calls of this token at once. Wait a few seconds, then try again.");
  if (status >= 500) return new CallError("away", `The server does not answer (${status}). It may be starting: try again in a moment.`);
  return new CallError("failed", said || `The server answered ${status}.`);
}

async function send(method, params, { signal, onProgress }) {
  for (let attempt = 1; ; attempt++) {
    let answer;
    try {
      answer = await fetch(at("mcp/api"), {
        method: "POST", body: body(method, params, onProgress), headers: headers(method, params), signal, cache: "no-store", credentials: "omit", redirect: "error",
      });
    } catch (problem) {
      throw signal?.aborted ? new CallError("cancelled", "Cancelled.") : away(problem);
    }
    if (answer.status === 429 && attempt <= RETRIES) {
      await pause(1000 * (Number(answer.headers.get("Retry-After")) || 1), signal);
      continue;
    }
    if (!answer.ok) throw await refused(answer);
    return answer;
  }
}

/** The messages of an event stream, one by one, as they come. */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      let from = 0;
      while ((end = rest.indexOf("\n\n", from)) >= 0) {
        const data = rest.slice(from, end).split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        from = end + 2;
        if (data) yield JSON.parse(data);
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function response(answer, { signal, onProgress }) {
  if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return answer.json();
  try {
    for await (const message of events(answer.body)) {
      if (message.method === "notifications/progress") onProgress?.(message.params);
      else if ("id" in message) return message;
    }
  } catch (problem) {
    throw signal?.aborted ? new CallError("cancelled", "Cancelled.") : away(problem);
  }
  throw away(new Error("the stream ended without an answer"));
}

async function request(method, params, options = {}) {
  try {
    const answer = await response(await send(method, params, options), options);
    if (answer.error) throw new CallError("failed", answer.error.message);
    return answer.result;
  } catch (problem) {
    const error = problem instanceof CallError ? problem : options.signal?.aborted ? new CallError("cancelled", "Cancelled.") : away(problem);
    if (error.kind === "token" || error.kind === "away") client.onLost(error);
    throw error;
  }
}

const words = (result) => (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");

/** Calls a tool. options: signal (closing the stream cancels), onProgress(params). Returns {data, words, content}. */
export async function callTool(name, args, options = {}) {
  const result = await request("tools/call", { name, arguments: args }, options);
  const data = result.structuredContent ?? {};
  if (result.isError && data.status === "busy") throw new CallError("busy", words(result), { retryAfterMs: data.retryAfterMs, position: data.position });
  if (result.isError && !data.status) throw new CallError("argument", words(result));
  return { data, words: words(result), content: result.content ?? [] };
}

export const listTools = () => request("tools/list", {}).then((result) => result.tools);

/** Is a worker there? */
export async function healthy() {
  try {
    return (await fetch(at("healthz"), { cache: "no-store", credentials: "omit" })).ok;
  } catch {
    return false;
  }
}

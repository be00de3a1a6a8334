// Uploads: a link for each file, then its bytes, a few files at a time.
import { callTool } from "./mcp.js";
import { ownUrl } from "./place.js";

const AT_ONCE = 3;

/** Sends one file; onProgress(0 … 1). The signal ends it; a broken upload leaves nothing. */
async function send({ file, name, conversation, signal, onProgress }) {
  const { data } = await callTool("create_upload", { filename: name, conversationId: conversation, size: file.size }, { signal });
  await new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch tells nothing of what has been sent
    const fail = (text) => reject(new Error(text));
    request.open("PUT", ownUrl(data.url));
    request.upload.onprogress = (event) => onProgress(event.total ? event.loaded / event.total : 0);
    request.onload = () => (request.status < 300 ? resolve() : fail(reason(request)));
    request.onerror = () => fail("The connection broke. Nothing was kept: drop the file again.");
    request.onabort = () => fail("Cancelled.");
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}

function reason(request) {
  try {
    return `Refused: ${JSON.parse(request.responseText).error}.`;
  } catch {
    return `The server answered ${request.status}.`;
  }
}

/** Files of a drop, with those in folders: [{file, name}]. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file, name: file.name }));
  return (await Promise.all(entries.map((entry) => walk(entry, "")))).flat();
}

async function walk(entry, above) {
  const name = above + entry.name;
  if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), name }];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    found.push(...some);
  }
  return (await Promise.all(found.map((one) => walk(one, `${name}/`)))).flat();
}

/** Sends files; onChange(item) for each step of one: {name, size, part, error, done, cancel()}. */
export async function upload(files, conversation, onChange) {
  const waiting = files.map(({ file, name }) => {
    const abort = new AbortController();
    return { file, name, size: file.size, part: 0, error: null, done: false, abort, cancel: () => abort.abort() };
  });
  waiting.forEach(onChange);
  const next = async () => {
    for (let item = waiting.shift(); item; item = waiting.shift()) {
      try {
        await send({ ...item, conversation, signal: item.abort.signal, onProgress: (part) => { item.part = part; onChange(item); } });
        item.done = true;
      } catch (problem) {
        item.error = problem.message;
      }
      onChange(item);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

// Where this page lies. It may lie below a path, and under another name than PUBLIC_BASE_URL: what the server calls by its public
// name is asked for at this page's own place, so that no request leaves it.

const base = new URL(".", document.baseURI);

export const at = (path) => new URL(path, base).href;

/** The server's URL of a file, an upload or an archive, at this place; null: it is none of ours. */
export function ownUrl(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  const found = /^https?:$/.test(url.protocol) && url.pathname.match(/\/((?:files\/[0-9a-f]{64}|uploads|archives)\/.*)$/);
  return found ? at(found[1] + url.search) : null;
}

export const mcpUrl = at("mcp");

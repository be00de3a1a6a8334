// What this browser keeps. The token: only if asked to, for this device. Everything else: of this tab, and never the token.

const TOKEN = "sandcgi-token";
const TAB = "sandcgi-tab";
const HISTORY_MAX = 30;
const CODE_MAX = 50_000; // characters of a program in the history

function read(storage, name) {
  try {
    return storage.getItem(name);
  } catch {
    return null;
  }
}

function write(storage, name, value) {
  try {
    if (value === null) storage.removeItem(name);
    else storage.setItem(name, value);
  } catch { /* no room, or forbidden: then it is not kept */ }
}

export const keptToken = () => read(localStorage, TOKEN);
export const keepToken = (token) => write(localStorage, TOKEN, token);
export const keptTheme = () => read(localStorage, "sandcgi-theme");
export const keepTheme = (theme) => write(localStorage, "sandcgi-theme", theme);

/** The token of a sign-in link, #token=…. It leaves the address at once, and is not kept. null: there is none. */
export function linkedToken() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token");
  if (token === null) return null;
  fragment.delete("token");
  history.replaceState(null, "", `${location.pathname}${location.search}${fragment.size ? `#${fragment}` : ""}`);
  return token;
}

/** {language, texts: {language: code}, history: […], running} of this tab. */
export function tab() {
  try {
    return { texts: {}, history: [], ...JSON.parse(read(sessionStorage, TAB) ?? "{}") };
  } catch {
    return { texts: {}, history: [] };
  }
}

export function keepTab(state) {
  const history = state.history.slice(0, HISTORY_MAX).map((entry) => ({ ...entry, code: entry.code.slice(0, CODE_MAX) }));
  write(sessionStorage, TAB, JSON.stringify({ ...state, history }));
}

/** The conversation of the fragment, #c=…; a new one with an id that nobody guesses, where there is none. */
export function conversation() {
  const named = new URLSearchParams(location.hash.slice(1)).get("c");
  if (named) return named;
  const made = `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  setConversation(made);
  return made;
}

export function setConversation(id) {
  history.replaceState(null, "", `#${new URLSearchParams({ c: id })}`);
}

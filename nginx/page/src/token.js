// Asks for the token.
import { byId } from "./dom.js";
import { CallError, callTool, setToken } from "./mcp.js";
import { keepToken, keptToken } from "./keep.js";

/** Shows the form until a token works; returns what list_runners says. why: a word above it. */
export function askToken(why = "") {
  const gate = byId("gate");
  const form = byId("token-form");
  const input = byId("token");
  const problem = byId("token-problem");
  gate.hidden = false;
  byId("main").inert = true;
  problem.textContent = why;
  input.value = "";
  input.focus();
  return new Promise((resolve) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      const token = input.value.trim();
      if (!token) return;
      byId("token-submit").disabled = true;
      problem.textContent = "";
      try {
        const runners = await tryToken(token);
        if (byId("token-keep").checked) keepToken(token);
        gate.hidden = true;
        byId("main").inert = false;
        input.value = "";
        form.onsubmit = null;
        resolve(runners);
      } catch (error) {
        problem.textContent = error.message;
        input.select();
      } finally {
        byId("token-submit").disabled = false;
      }
    };
  });
}

/** While the form is shown: as if the token had been typed. */
export function signIn(token) {
  byId("token").value = token;
  byId("token-form").requestSubmit();
}

async function tryToken(token) {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CallError("token", "A token has letters, digits and signs only: is this all of it, and nothing else?");
  setToken(token);
  try {
    return (await callTool("list_runners", {})).data.languages;
  } catch (error) {
    setToken(null);
    throw error;
  }
}

/** With the token of a link, or the one that this device keeps, else with one that is asked for. waitForServer resolves when the
 *  server is back. */
export async function enter(linked, waitForServer) {
  for (let token = linked || keptToken(); token; ) {
    try {
      return await tryToken(token);
    } catch (error) {
      if (error.kind === "token" && !linked) keepToken(null);
      if (error.kind !== "away") return askToken(error.message);
      await waitForServer();
    }
  }
  return askToken();
}

export function leave() {
  keepToken(null);
  location.reload();
}

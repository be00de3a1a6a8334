// How another client reaches this server, with its URL filled in.
import { copy, h, openDialog } from "./dom.js";
import { theToken } from "./mcp.js";
import { at, mcpUrl } from "./place.js";

const quote = (text) => `'${text.replace(/'/g, "'\\''")}'`;
const json = (value) => JSON.stringify(value, null, 2);

/** name, an explanation, and the text: f(token, args of run_code). */
const CLIENTS = [
  ["curl", "Runs the program in the editor.", (token, args) => `curl -sS ${quote(at("mcp/api"))} \\
  -H ${quote(`Authorization: Bearer ${token}`)} -H 'Content-Type: application/json' \\
  -d ${quote(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "run_code", arguments: args } }))}`],
  ["Claude Code", "In a terminal.", (token) => `claude mcp add --transport http sandcgi ${mcpUrl} --header "Authorization: Bearer ${token}"`],
  ["Claude Desktop", "In claude_desktop_config.json; the bridge mcp-remote needs Node.", (token) => json({ mcpServers: { sandcgi: { command: "npx", env: { AUTH: `Bearer ${token}` },
    args: ["-y", "mcp-remote", mcpUrl, "--header", "Authorization:${AUTH}"] } } })],
  ["VS Code", "In .vscode/mcp.json.", (token) => json({ servers: { sandcgi: { type: "http", url: mcpUrl, headers: { Authorization: `Bearer ${token}` } } } })],
  ["n8n", "Node “MCP Client Tool”: enter these. The node “MCP Client” alone, without an agent, takes the second URL.", (token) =>
    `Server Transport:   HTTP Streamable\nMCP Endpoint URL:   ${mcpUrl}\n                    ${at("mcp/api")}\nAuthentication:     Bearer\nToken:              ${token}`],
];

/** Where the server asks for a login (SANDCGI_OAUTH): they take the URL alone. */
const HOSTED = ["Claude, ChatGPT, Copilot", "On the web, the phone and the desktop: where they ask for a server's URL. They log in by themselves.", () =>
  `URL:              ${mcpUrl}\nAuthentication:   OAuth\n
Claude:           Settings, Connectors, Add custom connector
ChatGPT:          Settings, Apps & Connectors, Developer mode, Create
Copilot Studio:   Tools, Add a tool, Model Context Protocol; OAuth 2.0, dynamic discovery`];

async function hasLogin() {
  try {
    return (await fetch(at(".well-known/oauth-protected-resource/mcp"))).ok;
  } catch {
    return false;
  }
}

export async function openCopyAs(args) {
  const clients = await hasLogin() ? [...CLIENTS, HOSTED] : CLIENTS;
  const text = h("pre", { class: "copied", tabindex: "0" });
  const what = h("p", { class: "quiet" });
  const withToken = h("input", { type: "checkbox" });
  const take = h("button", { type: "button", class: "primary" }, "Copy");
  const choice = h("div", { class: "tabs", role: "radiogroup", ariaLabel: "Client" }, clients.map(([name], i) =>
    h("label", {}, h("input", { type: "radio", name: "client", value: String(i), checked: i === 0 }), h("span", {}, name))));
  const draw = () => {
    const [, explanation, make] = clients[Number(choice.querySelector(":checked").value)];
    what.textContent = explanation;
    text.textContent = make(withToken.checked ? theToken() : "TOKEN", args);
    take.textContent = "Copy";
  };
  choice.addEventListener("change", draw);
  withToken.addEventListener("change", draw);
  take.addEventListener("click", async () => {
    await copy(text.textContent);
    take.textContent = "Copied";
  });
  draw();
  openDialog("Use it from elsewhere", choice, what, text,
    h("footer", {}, h("label", { class: "check" }, withToken, "with my token: keep the text secret"), take)).dialog.classList.add("wide");
}

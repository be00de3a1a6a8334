// Building the page's elements. Text is always text: nothing here, or anywhere on the page, parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "x", onclick: f, ariaLabel: "y"}, "text", child): null and false children are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name.startsWith("aria") && name !== "aria") element.setAttribute(`aria-${name.slice(4).toLowerCase()}`, value);
  else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

const PATHS = {
  close: "M4 4l8 8M12 4l-8 8",
  download: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  upload: "M8 11V3M4.5 6 8 2.5 11.5 6M3 13.5h10",
  rename: "M3 13h2.5L13 5.5 10.5 3 3 10.5zM9 4.5 11.5 7",
  delete: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  folder: "M2 4h4.5L8 5.5h6v7H2z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  markdown: "M1.5 11.5v-7l3 3.5 3-3.5v7M12 4.5v6.5M9.5 8.5 12 11l2.5-2.5",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A button with a sign and a name; quiet: only the sign is seen. */
export function button(sign, name, onclick, { quiet = false, ...rest } = {}) {
  return h("button", { type: "button", onclick, class: quiet ? "sign" : "", title: quiet ? name : null, ariaLabel: quiet ? name : null, ...rest },
    icon(sign), quiet ? null : h("span", {}, name));
}

export const byId = (id) => document.getElementById(id);

/** Replaces what is in element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== false && child !== undefined));
}

/** For readers of the screen: said once, politely. */
export function announce(text) {
  byId("announcer").textContent = text;
}

/** A dialog with a title; closes with Escape, its cross, or a click beside it. Resolves when it is closed. */
export function openDialog(title, ...content) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const dialog = h("dialog", { ariaLabelledby: "dialog-title" },
    h("header", {}, heading, button("close", "Close", () => dialog.close(), { quiet: true })), ...content);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  const closed = new Promise((resolve) => dialog.addEventListener("close", () => { dialog.remove(); resolve(); }));
  return { dialog, closed };
}

/** Asks for a line of text, or only for a yes (no label); null: cancelled. */
export function ask({ title, text = "", label = "", value = "", yes, danger = false }) {
  return new Promise((resolve) => {
    const input = label ? h("input", { type: "text", value, id: "ask-input", autocomplete: "off", spellcheck: "false" }) : null;
    let answer = null;
    const done = (event) => {
      event.preventDefault();
      answer = input ? input.value : "";
      opened.dialog.close();
    };
    const form = h("form", { onsubmit: done },
      text ? h("p", {}, text) : null,
      input ? h("label", { for: "ask-input" }, label, input) : null,
      h("footer", {}, h("button", { type: "button", onclick: () => opened.dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes)));
    const opened = openDialog(title, form);
    if (input) input.select();
    opened.closed.then(() => resolve(answer));
  });
}

/** Into the clipboard; pages that were loaded by plain http from another machine have the old way only. */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const place = h("textarea", { class: "said", value: text });
  (document.querySelector("dialog[open]") ?? document.body).append(place);
  place.select();
  document.execCommand("copy");
  return place.remove();
}

export function saveAs(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// Tabs as the ARIA practices describe them: arrows move, the chosen one alone is in the order of the Tab key.
import { byId } from "./dom.js";

export class Tabs {
  constructor(list, onChoose) {
    this.tabs = [...list.querySelectorAll("[role=tab]")];
    this.onChoose = onChoose;
    list.addEventListener("click", (event) => {
      const tab = event.target.closest("[role=tab]");
      if (tab) this.choose(tab.dataset.panel);
    });
    list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  choose(panel) {
    for (const tab of this.tabs) {
      const chosen = tab.dataset.panel === panel;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(tab.dataset.panel).hidden = !chosen;
    }
    this.onChoose(panel);
  }

  #onKey(event) {
    const at = this.tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const tab = this.tabs[(to + this.tabs.length) % this.tabs.length];
    this.choose(tab.dataset.panel);
    tab.focus();
  }
}

// The keyboard: one table of keys for the place a reader is at, and a sheet that lists them.

import { h, put } from "./dom.js";

let places = [];
let sheet = null;

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", Enter: "Enter" };

// Keys are [{keys: ["j"], does: "next trace", run: () => …}]; those of the inner place come first.
export function setKeys(...tables) {
  places = tables;
}

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) {
      event.target.blur();
      event.preventDefault();
      return;
    }
    if (typing || sheet?.open) return;
    const found = places.flat().find((entry) => entry.keys.includes(event.key));
    if (!found || (event.key === "Enter" && event.target.matches("a, button, summary"))) return;
    event.preventDefault();
    found.run(event);
  });
}

export function help() {
  if (sheet?.open) {
    sheet.close();
    return;
  }
  sheet ??= document.body.appendChild(h("dialog", { class: "sheet", "aria-label": "Keyboard" }));
  const lines = places
    .flat()
    .filter((entry) => entry.does)
    .map((entry) =>
      h(
        "tr",
        null,
        h(
          "td",
          null,
          entry.keys.map((key, place) => [place ? " " : "", h("kbd", null, NAMES[key] || key)]),
        ),
        h("td", null, entry.does),
      ),
    );
  put(
    sheet,
    h("h2", null, "Keyboard"),
    h("table", null, h("tbody", null, lines)),
    h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")),
  );
  sheet.showModal();
}

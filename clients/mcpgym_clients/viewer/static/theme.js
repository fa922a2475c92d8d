// Light or dark: as the system has it, until a reader chooses.

import { h } from "./dom.js";

const KEY = "mcpgym-theme";

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function applyTheme(chosen = stored()) {
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}

export function turnTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const chosen = (document.documentElement.dataset.theme || system) === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // a browser that stores nothing: it holds until the page is closed
  }
  applyTheme(chosen);
}

export function themeButton() {
  return h(
    "button",
    { class: "icon", title: "Light or dark (d)", "aria-label": "Light or dark", onclick: turnTheme },
    "◐",
  );
}

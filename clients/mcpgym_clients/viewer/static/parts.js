// Parts that several pages have.

import { copy, h } from "./dom.js";
import { figure } from "./format.js";

const LETTERS = { win: "W", draw: "D", loss: "L", unfinished: "…" };

export function outcomeMark(outcome, total) {
  if (total === null) return h("span", { class: "mark unscored", title: "unscored" }, "?");
  if (outcome) return h("span", { class: `mark ${outcome}`, title: outcome }, LETTERS[outcome] || "·");
  const share = Math.min(1, Math.max(0, total));
  return h("span", { class: "mark meter", title: `reward ${total}` }, h("i", { style: { height: `${100 * share}%` } }));
}

export function command(text) {
  const button = h("button", { class: "button small", onclick: () => copy(text, button) }, "copy");
  return h("div", { class: "command" }, h("code", null, text), button);
}

export function tile(name, value, more, extra) {
  return h(
    "div",
    { class: "tile" },
    h("div", { class: "name" }, name),
    h("div", { class: "value" }, value),
    more ? h("div", { class: "more" }, more) : null,
    extra,
  );
}

export function notice(text, kind = "") {
  return h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null }, text);
}

export function facts(entries) {
  return h(
    "dl",
    { class: "facts" },
    entries
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  );
}

// What sets a run's configuration apart is easier seen as name=value.
export function configuration(config) {
  const entries = Object.entries(config || {});
  return entries.length
    ? h(
        "span",
        { class: "pairs" },
        entries.map(([name, value]) =>
          h("code", null, `${name}=${typeof value === "number" ? String(value) : JSON.stringify(value)}`),
        ),
      )
    : null;
}

export function rewardText(reward) {
  return reward && reward.mean !== null ? figure(reward.mean) : "–";
}

// Two runs side by side: the same tasks and seeds in both.

import { whisker } from "./charts.js";
import { h, put } from "./dom.js";
import { between, count, figure, OUTCOMES, percent, words } from "./format.js";
import { notice, outcomeMark, tile } from "./parts.js";
import { compareAddress, runAddress, runsAddress, traceAddress } from "./route.js";

const STEP = 100;

export function comparePage(root, source) {
  const body = h("div", { class: "page" });
  put(root, body);
  let names = [];
  return {
    keys: [
      { keys: ["s"], does: "the other way round", run: () => { location.hash = compareAddress(names[1], names[0]); } },
      { keys: ["Escape", "o"], does: "all runs", run: () => { location.hash = runsAddress(); } },
    ],
    title: "Compare",
    async show(route) {
      names = route.names;
      put(body, h("p", { class: "dim" }, "Reading…"));
      try {
        const [found, first, second] = await Promise.all([source.compare(names), ...names.map((name) => source.run(name))]);
        put(body, view(found, first.card, second.card));
      } catch (problem) {
        put(body, notice(problem.message, "bad"));
      }
    },
    close() {},
  };
}

function view(found, first, second) {
  const [a, b] = found.names;
  const reach = Math.max(0.1, ...(found.difference?.interval || []).map(Math.abs));
  return [
    h("div", { class: "heading" }, h("h1", null, h("a", { href: runAddress(b) }, b), h("span", { class: "dim" }, " against "), h("a", { href: runAddress(a) }, a)), h("span", { class: "grow" }),
      h("a", { class: "button small", href: compareAddress(b, a) }, "swap")),
    found.differs.map((name) => notice(`The runs differ in ${words(name)}: the difference says nothing about the policies alone.`, "bad")),
    found.only[0] || found.only[1] ? notice(`${found.only[0]} episodes are in ${a} alone, and ${found.only[1]} in ${b} alone; they are left out.`, "warn") : null,
    found.difference ? h("div", { class: "tiles" },
      h("div", { class: "tile wide" }, h("div", { class: "name" }, "difference in mean reward, paired by task and seed"), h("div", { class: "value" }, figure(found.difference.mean)),
        h("div", { class: "more" }, between(found.difference.interval)), whisker(found.difference.mean, found.difference.interval, -reach, reach)),
      tile(found.distinguishable ? "verdict" : "verdict at 95 %", found.distinguishable ? `${found.difference.mean > 0 ? b : a} is better` : "not distinguishable", `${count(found.scored, "pair")}: ${b} better in ${found.better}, worse in ${found.worse}, equal in ${found.scored - found.better - found.worse}`),
      tile(a, figure(first.reward?.mean), between(first.reward?.interval)), tile(b, figure(second.reward?.mean), between(second.reward?.interval)))
      : notice("No episode of the same task and seed is scored in both.", "warn"),
    matrix(found),
    found.list.length ? h("section", null, h("h2", null, "Episodes that differ most"), pairs(found)) : null,
  ];
}

function matrix(found) {
  const named = OUTCOMES.filter((name) => found.outcomes[name] || Object.values(found.outcomes).some((line) => line[name]));
  if (!named.length) return null;
  const most = Math.max(...Object.values(found.outcomes).flatMap((line) => Object.values(line)));
  const cell = (first, second) => {
    const number = found.outcomes[first]?.[second] || 0;
    const better = OUTCOMES.indexOf(second) - OUTCOMES.indexOf(first);
    return h("td", { class: `number matrix ${better < 0 ? "up" : better > 0 ? "down" : "same"}`, style: { "--share": `${Math.round((70 * number) / most)}%` }, title: `${number} episodes: ${first} in ${found.names[0]}, ${second} in ${found.names[1]} (${percent(number / found.scored)})` }, number || "");
  };
  return h("section", null, h("h2", null, "Outcomes"), h("table", { class: "table narrow" },
    h("thead", null, h("tr", null, h("th", null, `${found.names[0]} ↓  ${found.names[1]} →`), named.map((name) => h("th", { class: "number" }, name)))),
    h("tbody", null, named.map((first) => h("tr", null, h("th", null, first), named.map((second) => cell(first, second)))))));
}

function pairs(found) {
  const body = h("tbody");
  let shown = 0;
  const link = (place, pair) => h("a", { href: traceAddress(found.names[place], pair.n[place]) }, outcomeMark(pair.outcome[place], pair.total[place]), ` ${figure(pair.total[place], 2)}`);
  const more = h("button", { class: "button", onclick: () => add() }, "Show more");
  const add = () => {
    for (const pair of found.list.slice(shown, shown + STEP)) {
      body.append(h("tr", null, h("td", null, pair.task, h("span", { class: "dim" }, ` seed ${pair.seed}`)), h("td", null, link(0, pair)), h("td", null, link(1, pair)),
        h("td", { class: `number ${pair.change > 0 ? "good-text" : pair.change < 0 ? "bad-text" : "dim"}` }, figure(pair.change, 2))));
    }
    shown = Math.min(found.list.length, shown + STEP);
    more.hidden = shown >= found.list.length;
  };
  add();
  return [h("table", { class: "table narrow" }, h("thead", null, h("tr", null, h("th", null, "Task"), h("th", null, found.names[0]), h("th", null, found.names[1]), h("th", { class: "number" }, "Change"))), body), more];
}

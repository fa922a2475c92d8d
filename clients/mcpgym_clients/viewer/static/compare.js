// Two runs side by side: the same tasks and seeds in both.

import { whisker } from "./charts.js";
import { h, put } from "./dom.js";
import { between, figure, OUTCOMES, percent, words } from "./format.js";
import { notice, outcomeMark, tile } from "./parts.js";
import { compareAddress, runAddress, runsAddress, traceAddress } from "./route.js";

const STEP = 100;

export function comparePage(root, source) {
  const body = h("div", { class: "page" });
  put(root, body);
  let names = [];
  return {
    keys: [
      {
        keys: ["s"],
        does: "the other way round",
        run: () => {
          location.hash = compareAddress(names[1], names[0]);
        },
      },
      {
        keys: ["Escape", "o"],
        does: "all runs",
        run: () => {
          location.hash = runsAddress();
        },
      },
    ],
    title: "Compare",
    async show(route) {
      names = route.names;
      put(body, h("p", { class: "dim" }, "Reading…"));
      try {
        const [found, first, second] = await Promise.all([
          source.compare(names),
          ...names.map((name) => source.run(name)),
        ]);
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
  const reward = found.metrics.find((row) => row.metric === "reward");
  const which = (letter, name, card) =>
    h(
      "div",
      { class: "tile" },
      h("div", { class: "name" }, letter),
      h("a", { class: "strong", href: runAddress(name) }, name),
      h("div", { class: "more" }, [card.policy, card.environment].filter(Boolean).join(" on ")),
      h("div", { class: "more" }, h("b", null, figure(card.reward?.mean)), `  ${between(card.reward?.interval)}`),
    );
  return [
    h(
      "div",
      { class: "heading" },
      h("h1", null, "B against A"),
      h("span", { class: "grow" }),
      h("a", { class: "button small", href: compareAddress(b, a), title: "The other way round (s)" }, "swap"),
    ),
    found.reasons.map((text) => notice(`These runs should not be compared: ${text}.`, "bad")),
    h(
      "div",
      { class: "tiles" },
      which("A", a, first),
      which("B", b, second),
      reward
        ? tile(
            "B − A, paired",
            figure(reward.difference),
            between(reward.interval),
            whisker(reward.difference, reward.interval, ...around(reward)),
          )
        : null,
      tile(
        "pairs",
        String(found.scored),
        `B better in ${found.better}, worse in ${found.worse}, equal in ${found.scored - found.better - found.worse}`,
      ),
    ),
    h("p", { class: `notice ${reward?.distinguishable ? "" : "warn"}` }, found.verdict),
    found.notes.map((text) => notice(text, "warn")),
    h("div", { class: "side-by-side" }, metrics(found), matrix(found)),
    found.pairs.length ? h("section", null, h("h2", null, "Episodes that differ most"), pairs(found)) : null,
  ];
}

// An axis with zero in its middle that has room for the interval.
function around(row) {
  const reach = Math.max(0.05, ...[row.difference, ...(row.interval || [])].map(Math.abs));
  return [-reach, reach];
}

function metrics(found) {
  if (!found.metrics.length) return null;
  const reach = Math.max(...found.metrics.map((row) => around(row)[1]));
  return h(
    "section",
    null,
    h("h2", null, "Differences"),
    h(
      "table",
      { class: "table narrow" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["", "A", "B", "B − A", "95 % interval", ""].map((name, place) =>
            h("th", { class: place && place < 4 ? "number" : null }, name),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        found.metrics.map((row) =>
          h(
            "tr",
            null,
            h("td", null, words(row.metric)),
            h("td", { class: "number" }, figure(row.a_mean)),
            h("td", { class: "number" }, figure(row.b_mean)),
            h("td", { class: "number" }, h("b", null, figure(row.difference))),
            h("td", { class: "dim" }, between(row.interval)),
            h("td", null, whisker(row.difference, row.interval, -reach, reach)),
          ),
        ),
      ),
    ),
  );
}

function matrix(found) {
  const named = OUTCOMES.filter(
    (name) => found.outcomes[name] || Object.values(found.outcomes).some((line) => line[name]),
  );
  if (!named.length) return null;
  const most = Math.max(...Object.values(found.outcomes).flatMap((line) => Object.values(line)));
  const cell = (first, second) => {
    const number = found.outcomes[first]?.[second] || 0;
    const better = OUTCOMES.indexOf(second) - OUTCOMES.indexOf(first);
    return h(
      "td",
      {
        class: `number matrix ${better < 0 ? "up" : better > 0 ? "down" : "same"}`,
        style: { "--share": `${Math.round((70 * number) / most)}%` },
        title: `${number} episodes (${percent(number / found.scored)}): ${first} in A, ${second} in B`,
      },
      number || "",
    );
  };
  return h(
    "section",
    null,
    h("h2", null, "Outcomes in A and in B"),
    h(
      "table",
      { class: "table narrow" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", null, `A ↓  B →`),
          named.map((name) => h("th", { class: "number" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        named.map((first) =>
          h(
            "tr",
            null,
            h("th", null, first),
            named.map((second) => cell(first, second)),
          ),
        ),
      ),
    ),
  );
}

function pairs(found) {
  const body = h("tbody");
  let shown = 0;
  const link = (place, pair) =>
    h(
      "a",
      { href: traceAddress(found.names[place], pair.n[place]) },
      outcomeMark(pair.outcome[place], pair.total[place]),
      ` ${figure(pair.total[place], 2)}`,
    );
  const more = h("button", { class: "button", onclick: () => add() }, "Show more");
  const add = () => {
    for (const pair of found.pairs.slice(shown, shown + STEP)) {
      body.append(
        h(
          "tr",
          null,
          h("td", null, pair.task, h("span", { class: "dim" }, ` seed ${pair.seed}`)),
          h("td", null, link(0, pair)),
          h("td", null, link(1, pair)),
          h(
            "td",
            { class: `number ${pair.change > 0 ? "good-text" : pair.change < 0 ? "bad-text" : "dim"}` },
            figure(pair.change, 2),
          ),
        ),
      );
    }
    shown = Math.min(found.pairs.length, shown + STEP);
    more.hidden = shown >= found.pairs.length;
  };
  add();
  return [
    h(
      "table",
      { class: "table narrow" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", null, "Task"),
          h("th", null, "A"),
          h("th", null, "B"),
          h("th", { class: "number" }, "Change"),
        ),
      ),
      body,
    ),
    more,
  ];
}

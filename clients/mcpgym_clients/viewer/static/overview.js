// What the traces of a run say together.

import { histogram, shares, whisker } from "./charts.js";
import { h } from "./dom.js";
import { between, count, duration, figure, moment, OUTCOMES, percent, words } from "./format.js";
import { command, configuration, facts, notice, tile } from "./parts.js";

export function overview(details, change) {
  const card = details.card;
  const chosen = (bar) => change({ low: String(bar.least), high: String(bar.most) });
  return [
    h(
      "div",
      { class: "heading" },
      h(
        "h1",
        null,
        card.policy || card.name,
        h("span", { class: "dim" }, ` on ${card.environment || "?"} ${card.version || ""}`),
      ),
    ),
    card.problem ? notice(card.problem, "bad") : null,
    (details.notes || []).map((text) => notice(text, "warn")),
    h("div", { class: "tiles" }, reward(card), outcomes(card), mistakes(details, change), episodes(card, details)),
    h(
      "section",
      null,
      h("h2", null, "Rewards"),
      details.histogram.bars.length
        ? histogram(details.histogram.bars, details.histogram.exact, chosen)
        : notice("No episode has a score."),
      details.histogram.bars.length ? h("p", { class: "dim hint" }, "Click a bar to list its traces.") : null,
    ),
    components(details),
    passes(details.passes),
    h(
      "section",
      null,
      h("h2", null, "How to repeat it"),
      card.command ? command(card.command) : null,
      facts([
        ["folder", card.folder],
        ["split", card.split],
        ["tasks", card.tasks && `${card.tasks}${card.repeats > 1 ? ` × ${card.repeats}` : ""}`],
        ["seed", card.seed],
        ["configuration", configuration(card.config)],
        ["schema hash", card.schema_hash && h("code", null, card.schema_hash.slice(0, 16))],
        ["started", moment(card.started)],
        ["took", duration(card.seconds)],
        ["cost", details.cost === null || details.cost === undefined ? null : `$${details.cost.toFixed(4)}`],
        [
          "tokens read / written",
          details.tokens?.prompt || details.tokens?.completion
            ? `${details.tokens.prompt.toLocaleString("en-US")} / ${details.tokens.completion.toLocaleString("en-US")}`
            : null,
        ],
      ]),
    ),
  ];
}

function reward(card) {
  const found = card.reward || { mean: null };
  const low = Math.min(0, ...(found.interval || []));
  const high = Math.max(1, ...(found.interval || []));
  return tile(
    "mean reward, 95 % interval",
    figure(found.mean),
    between(found.interval),
    whisker(found.mean, found.interval, low, high),
  );
}

function outcomes(card) {
  const named = OUTCOMES.filter((name) => card.outcomes?.[name]);
  if (!named.length) return null;
  return h(
    "div",
    { class: "tile wide" },
    h("div", { class: "name" }, "outcomes"),
    shares(card.outcomes, true),
    h(
      "div",
      { class: "legend" },
      named.map((name) =>
        h(
          "span",
          null,
          h("i", { class: `dot ${name}` }),
          `${name} `,
          h("b", null, percent(card.outcomes[name].mean)),
          h(
            "span",
            { class: "dim" },
            ` ${between(card.outcomes[name].interval, (value) => (100 * value).toFixed(0))}${typeof card.exact?.[name] === "number" ? ` · exact ${percent(card.exact[name])}` : ""}`,
          ),
        ),
      ),
    ),
  );
}

function mistakes(details, change) {
  const found = details.weighed;
  if (!found) return null;
  return h(
    "button",
    { class: "tile link", onclick: () => change({ only: "mistakes", order: "-mistakes" }) },
    h("div", { class: "name" }, "losing moves"),
    h("div", { class: "value" }, String(found.blunders)),
    h("div", { class: "more" }, `in ${count(found.turns, "turn")}; ${count(found.missed, "win")} missed`),
  );
}

function episodes(card, details) {
  const unscored = Object.entries(details.unscored || {}).map(([reason, number]) => `${number} ${words(reason)}`);
  const distinct = card.distinct === null || card.distinct === undefined ? "" : `${card.distinct} distinct`;
  const turns = details.turns?.mean ? `${details.turns.mean.toFixed(1)} turns` : "";
  return tile("episodes", String(card.episodes ?? "–"), [distinct, turns, ...unscored].filter(Boolean).join(" · "));
}

function components(details) {
  const found = Object.entries(details.components || {});
  if (!found.length) return null;
  const bounds = found.flatMap(([, item]) => [item.mean, ...(item.interval || [])]).filter((value) => value !== null);
  const [low, high] = [Math.min(0, ...bounds), Math.max(1, ...bounds)];
  const below = Object.entries(details.penalised || {});
  return h(
    "section",
    null,
    h("h2", null, "Components"),
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", null, "Reward"),
          h("th", { class: "number" }, "Mean"),
          h("th", null, "95 % interval"),
          h("th", { class: "only-wide" }),
          h("th", { class: "number" }, "n"),
        ),
      ),
      h(
        "tbody",
        null,
        found.map(([name, item]) =>
          h(
            "tr",
            null,
            h("td", null, words(name)),
            h("td", { class: "number" }, h("b", null, figure(item.mean))),
            h("td", { class: "dim" }, between(item.interval)),
            h("td", { class: "only-wide" }, whisker(item.mean, item.interval, low, high)),
            h("td", { class: "number dim" }, item.n ?? ""),
          ),
        ),
      ),
    ),
    below.map(([name, item]) =>
      h(
        "p",
        { class: "dim" },
        `${percent(item.mean)} of episodes with ${words(name)} (${between(item.interval, (value) => percent(value))})`,
      ),
    ),
  );
}

function passes(found) {
  if (!found) return null;
  const share = (value, interval) => [
    h("b", null, percent(value)),
    h("span", { class: "dim" }, `  ${between(interval, (one) => (100 * one).toFixed(0))}`),
  ];
  return h(
    "section",
    null,
    h("h2", null, "Several tries", h("span", { class: "dim" }, ` a pass is ${found.success}`)),
    h(
      "table",
      { class: "table narrow" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", null, "k"),
          h("th", null, "pass@k: one of k"),
          h("th", null, "pass^k: all of k"),
          h("th", { class: "number" }, "tasks"),
        ),
      ),
      h(
        "tbody",
        null,
        found.rates.map((rate) =>
          h(
            "tr",
            null,
            h("td", null, rate.k),
            h("td", null, share(rate.pass_at_k, rate.pass_at_k_interval)),
            h("td", null, share(rate.pass_hat_k, rate.pass_hat_k_interval)),
            h("td", { class: "number dim" }, rate.tasks),
          ),
        ),
      ),
    ),
  );
}

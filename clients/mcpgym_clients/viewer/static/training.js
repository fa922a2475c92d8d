// A training run: its curves, stage by stage, and its certificate.

import { board } from "./board.js";
import { curves } from "./charts.js";
import { h, put } from "./dom.js";
import { count, figure, percent, words } from "./format.js";
import { facts, notice, tile } from "./parts.js";
import { runsAddress } from "./route.js";

// What belongs in one picture; columns that none of them names come after them, each in its own.
const PICTURES = [
  ["Lines of play lost", ["certificate/lost_lines", "certificate/unfinished_lines"]],
  ["Outcomes of the batch", ["outcomes/win", "outcomes/draw", "outcomes/loss", "outcomes/unfinished"]],
  ["Exact wins against random play", ["certificate/win"]],
  ["Reward and its components", ["reward", "components/*"]],
  ["Loss", ["loss"]],
  ["Entropy, nats per token", ["entropy", "trained_entropy"]],
  ["Groups with signal", ["signal"]],
  ["Refused calls", ["invalid"]],
  ["Tokens per rollout", ["length"]],
  ["Learning rate", ["learning_rate"]],
  ["Gradient", ["gradient"]],
  ["Divergence", ["kl", "clipped"]],
];

export function trainingPage(root, source) {
  const body = h("div", { class: "page" });
  put(root, body);
  let name = "";
  return {
    keys: [
      {
        keys: ["Escape", "o"],
        does: "all runs",
        run: () => {
          location.hash = runsAddress();
        },
      },
    ],
    get title() {
      return name;
    },
    async show(route, details) {
      name = route.run;
      const found = details || (await source.run(name));
      const card = found.card;
      put(
        body,
        h("div", { class: "heading" }, h("h1", null, name, h("span", { class: "dim" }, ` ${card.environment || ""}`))),
        card.problem ? notice(card.problem, "bad") : null,
        found.certificate ? certificateView(found.certificate) : null,
        [...(found.stages || [])].reverse().map(stage),
      );
    },
    close() {},
  };
}

function stage({ name, columns }) {
  const steps = columns.step || [];
  const left = new Set(
    Object.keys(columns).filter((column) => column !== "step" && !/seconds|^groups\/|tokens|places/.test(column)),
  );
  const series = (pattern) =>
    [...left].filter((column) =>
      pattern.endsWith("*") ? column.startsWith(pattern.slice(0, -1)) : column === pattern,
    );
  const pictures = [];
  for (const [title, patterns] of PICTURES) {
    const found = patterns.flatMap(series);
    found.forEach((column) => left.delete(column));
    if (found.length) pictures.push([title, found]);
  }
  const more = [...left]
    .filter((column) => new Set(columns[column]).size > 1)
    .map((column) => [words(column), [column]]);
  const draw = ([title, found]) =>
    curves(
      title,
      steps,
      found.map((column) => ({ name: words(column.split("/").pop()), values: columns[column] })),
    );
  if (!steps.length) return h("section", null, h("h2", null, name), notice("There is no step in it yet."));
  return h(
    "section",
    null,
    h(
      "h2",
      null,
      name,
      h(
        "span",
        { class: "dim" },
        ` ${count(steps[steps.length - 1], "step")}${columns.cpu_seconds ? `, ${Math.round(columns.cpu_seconds.findLast((value) => value !== null) ?? 0)} CPU s` : ""}`,
      ),
    ),
    h("div", { class: "charts" }, pictures.map(draw)),
    more.length
      ? h("details", null, h("summary", null, `${more.length} more`), h("div", { class: "charts" }, more.map(draw)))
      : null,
  );
}

function certificateView(found) {
  const random = found.versus_random || {};
  const perfect = found.versus_perfect || {};
  const chances = (chance) =>
    ["win", "draw", "loss", "unfinished"]
      .filter((name) => chance[name] > 0)
      .map((name) => `${name} ${percent(chance[name], 2)}`)
      .join(" · ");
  return h(
    "section",
    null,
    h("h2", null, "Certificate", h("span", { class: "dim" }, " every reply of the opponent, not a sample")),
    h(
      "div",
      { class: "tiles" },
      tile(
        found.certified ? "certified" : "not certified",
        found.certified ? "never loses" : `${found.lost_lines} lost`,
        `${count(found.lines, "line")}: ${found.won_lines} won, ${found.drawn_lines} drawn, ${found.unfinished_lines} unfinished`,
      ),
      tile("against random play, exactly", percent(random.win, 2), chances(random)),
      tile("against perfect play", percent(perfect.win, 0), chances(perfect)),
      tile(
        "to the optimum",
        typeof found.distance === "number" ? percent(found.distance, 2) : "–",
        `${found.blunders ?? "–"} losing moves, ${found.suboptimal ?? "–"} weaker ones in ${count(found.decisions ?? 0, "decision")}`,
      ),
    ),
    loss(found.shortest_loss),
    regrets(found.regrets),
    facts([
      ["policy", found.policy],
      ["environment", `${found.environment} ${found.environment_version}`],
      ["policy hash", found.policy_hash && h("code", null, String(found.policy_hash).slice(0, 16))],
      ["made by", found.mcpgym && `mcpgym ${found.mcpgym}`],
    ]),
  );
}

function loss(line) {
  if (!line || !Array.isArray(line.positions)) return null;
  return h(
    "div",
    { class: "block" },
    h("h3", null, "The shortest lost line"),
    h(
      "div",
      { class: "positions" },
      line.positions.map((position, number) =>
        h(
          "figure",
          null,
          position.board ? board(position.board, null, true) : h("pre", null, position.text),
          h("figcaption", { class: "dim" }, number ? (line.moves?.[number - 1] ?? "") : "start"),
        ),
      ),
    ),
  );
}

function regrets(found) {
  if (!Array.isArray(found) || !found.length) return null;
  return h(
    "details",
    { class: "block", open: found.length < 12 },
    h("summary", null, `${count(found.length, "decision")} that cost wins, the costliest first`),
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Seat", "Moves before it", "Played", "Best", "Can be forced", "Wins against random play", "Reached"].map(
            (name) => h("th", null, name),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        found
          .slice(0, 100)
          .map((one) =>
            h(
              "tr",
              null,
              h("td", null, one.seat),
              h("td", null, h("code", null, (one.acts || []).join(" ") || "–")),
              h("td", null, h("code", null, one.played ?? "none")),
              h("td", null, h("code", null, one.best ?? "–")),
              h("td", { class: one.blunder ? "bad-text" : null }, (one.guaranteed || []).join(" → ")),
              h("td", null, (one.win || []).map((value) => percent(value)).join(" → ")),
              h("td", null, figure(100 * (one.reached ?? 0), 2), " %"),
            ),
          ),
      ),
    ),
  );
}

// All runs: what was played by whom, and how it went.

import { h, put } from "./dom.js";
import { between, count, figure, moment, percent, words } from "./format.js";
import { shares, whisker } from "./charts.js";
import { notice, rewardText } from "./parts.js";
import { compareAddress, runAddress, runsAddress } from "./route.js";

const FILTERS = ["environment", "policy", "split", "kind"];
const REFRESH = 4000;

export function runsPage(root, source) {
  let cards = [];
  let query = {};
  let at = -1;
  let timer = null;
  const chosen = new Set();
  const search = h("input", {
    type: "search",
    placeholder: "Find a run",
    "aria-label": "Find a run",
    oninput: () => change({ q: search.value }),
  });
  const filters = h("div", { class: "filters" });
  const body = h("div", { class: "runs" });
  const compareButton = h("button", { class: "button primary", disabled: true, onclick: compare }, "Compare two");

  function change(changed) {
    query = { ...query, ...changed };
    history.replaceState(null, "", runsAddress(query));
    draw();
  }

  function compare() {
    if (chosen.size === 2) location.hash = compareAddress(...chosen);
  }

  function choose(name) {
    if (chosen.has(name)) chosen.delete(name);
    else {
      if (chosen.size === 2) chosen.delete([...chosen][0]);
      chosen.add(name);
    }
    draw();
  }

  function shown() {
    const text = (query.q || "").toLowerCase();
    return cards.filter(
      (card) =>
        FILTERS.every((name) => !query[name] || query[name] === card[name]) &&
        (!text ||
          [card.name, card.environment, card.policy, card.split].some((part) =>
            (part || "").toLowerCase().includes(text),
          )),
    );
  }

  function drawFilters() {
    put(
      filters,
      FILTERS.map((name) => {
        const values = [...new Set(cards.map((card) => card[name]).filter(Boolean))].sort();
        if (values.length < 2 && !query[name]) return null;
        return h(
          "label",
          null,
          h("span", null, name),
          h(
            "select",
            { onchange: (event) => change({ [name]: event.target.value }) },
            h("option", { value: "" }, "all"),
            values.map((value) => h("option", { value, selected: value === query[name] }, value)),
          ),
        );
      }),
      h("span", { class: "grow" }),
      compareButton,
    );
  }

  function draw() {
    const found = shown();
    at = Math.min(at, found.length - 1);
    compareButton.disabled = chosen.size !== 2;
    compareButton.title = "Choose two evaluations (x), then compare them (c)";
    const played = found.filter((card) => card.kind === "evaluation");
    const others = found.filter((card) => card.kind !== "evaluation");
    put(
      body,
      played.length ? evaluations(played, found) : null,
      others.length
        ? h(
            "section",
            null,
            h("h2", null, "Training and certificates"),
            h(
              "div",
              { class: "tiles wide" },
              others.map((card) => trained(card, found)),
            ),
          )
        : null,
      found.length
        ? null
        : notice(
            cards.length
              ? "No run is like that."
              : "There is no run here yet. Make one: mcpgym eval ENV --policy POLICY.",
          ),
    );
  }

  function evaluations(played, found) {
    const bounds = played
      .flatMap((card) => [card.reward?.mean, ...(card.reward?.interval || [])])
      .filter((value) => typeof value === "number");
    const [low, high] = [Math.min(0, ...bounds), Math.max(1, ...bounds)];
    const games = played.some((card) => Object.keys(card.outcomes || {}).length);
    const row = (card) =>
      h(
        "tr",
        { "aria-selected": found.indexOf(card) === at ? "true" : null, "data-at": found.indexOf(card) },
        h(
          "td",
          { class: "tick" },
          h("input", {
            type: "checkbox",
            checked: chosen.has(card.name),
            "aria-label": `Compare ${card.name}`,
            onchange: () => choose(card.name),
          }),
        ),
        h(
          "td",
          null,
          h("a", { class: "strong", href: runAddress(card.name) }, card.name),
          card.problem
            ? h("div", { class: "bad-text" }, card.problem)
            : h("div", { class: "dim" }, [moment(card.started), state(card)].filter(Boolean).join(" · ")),
        ),
        h(
          "td",
          null,
          card.policy || "–",
          h("div", { class: "dim" }, [card.environment, card.split].filter(Boolean).join(" · ")),
        ),
        h(
          "td",
          { class: "number" },
          h("b", null, rewardText(card.reward)),
          h("div", { class: "dim" }, between(card.reward?.interval)),
        ),
        h("td", { class: "only-wide" }, whisker(card.reward?.mean, card.reward?.interval, low, high)),
        games
          ? h(
              "td",
              { class: "bar-cell" },
              shares(card.outcomes || {}),
              h("div", { class: "dim" }, outcomeText(card.outcomes || {})),
            )
          : null,
        h(
          "td",
          { class: "number" },
          card.episodes ?? "–",
          h(
            "div",
            { class: "dim" },
            card.distinct === null || card.distinct === undefined ? "" : `${card.distinct} distinct`,
          ),
        ),
      );
    return h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", null, h("span", { class: "unseen" }, "compare")),
          h("th", null, "Run"),
          h("th", null, "Policy"),
          h("th", { class: "number" }, "Reward", h("span", { class: "dim" }, " 95 %")),
          h("th", { class: "only-wide" }),
          games ? h("th", null, "Outcomes") : null,
          h("th", { class: "number" }, "Episodes"),
        ),
      ),
      h("tbody", null, played.map(row)),
    );
  }

  function trained(card, found) {
    const certificate = card.certificate;
    return h(
      "a",
      {
        class: "tile link",
        href: runAddress(card.name),
        "aria-selected": found.indexOf(card) === at ? "true" : null,
        "data-at": found.indexOf(card),
      },
      h(
        "div",
        { class: "name" },
        card.kind === "training" ? `training · ${(card.stages || []).join(" → ")}` : "certificate",
      ),
      h("div", { class: "strong" }, card.name),
      h("div", { class: "dim" }, [card.environment, card.policy, moment(card.modified)].filter(Boolean).join(" · ")),
      card.problem ? h("div", { class: "bad-text" }, card.problem) : null,
      certificate
        ? h(
            "div",
            { class: certificate.certified ? "good-text" : "bad-text" },
            certificate.certified
              ? `certified: none of ${count(certificate.lines, "line")} lost`
              : `${certificate.lost_lines} of ${count(certificate.lines, "line")} lost, ${certificate.unfinished_lines} unfinished`,
          )
        : null,
    );
  }

  function go(step) {
    const found = shown();
    if (!found.length) return;
    at = Math.max(0, Math.min(found.length - 1, at + step));
    draw();
    body.querySelector(`[data-at="${at}"]`)?.scrollIntoView({ block: "nearest" });
  }

  async function load() {
    clearTimeout(timer);
    try {
      const found = (await source.runs()).runs;
      if (JSON.stringify(found) !== JSON.stringify(cards)) {
        cards = found;
        drawFilters();
        draw();
      }
    } catch (problem) {
      put(body, notice(problem.message, "bad"));
    }
    if (source.live && root.contains(body)) timer = setTimeout(load, document.hidden ? 4 * REFRESH : REFRESH);
  }

  const keys = [
    { keys: ["j", "ArrowDown"], does: "next run", run: () => go(1) },
    { keys: ["k", "ArrowUp"], does: "run before", run: () => go(-1) },
    {
      keys: ["Enter"],
      does: "open the run",
      run: () => {
        const card = shown()[at];
        if (card) location.hash = runAddress(card.name);
      },
    },
    {
      keys: ["x"],
      does: "choose it for comparison",
      run: () => {
        const card = shown()[at];
        if (card?.kind === "evaluation") choose(card.name);
      },
    },
    { keys: ["c"], does: "compare the two that are chosen", run: compare },
    { keys: ["/"], does: "find a run", run: () => search.focus() },
  ];

  put(root, h("div", { class: "page" }, h("div", { class: "heading" }, h("h1", null, "Runs"), search), filters, body));
  return {
    keys,
    title: "Runs",
    show(route) {
      query = route.query;
      search.value = query.q || "";
      drawFilters();
      draw();
      return load();
    },
    close: () => clearTimeout(timer),
  };
}

function state(card) {
  if (card.complete === false) return "not complete";
  return card.complete === null ? "no summary yet" : "";
}

function outcomeText(outcomes) {
  return Object.entries(outcomes)
    .filter(([, share]) => share.mean > 0)
    .map(([name, share]) => `${words(name)} ${percent(share.mean, 0)}`)
    .join(" · ");
}

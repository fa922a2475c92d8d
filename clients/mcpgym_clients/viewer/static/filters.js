// What a list of traces can be narrowed to, and how it can be sorted.

import { h } from "./dom.js";
import { OUTCOMES, words } from "./format.js";

const ONLY = {
  bad: "lost, unscored or penalised",
  mistakes: "with a losing move or missed win",
  errors: "with refused calls",
  unscored: "unscored",
  penalised: "penalised",
};
const ORDERS = {
  place: "in order",
  "-total": "best first",
  total: "worst first",
  "-mistakes": "most mistakes first",
  "-turns": "longest first",
  turns: "shortest first",
};

// Chips and menus for what there is; change(part of a query) is called for what is chosen.
export function filters(counts, query, change) {
  const chip = (label, number, on, changed) =>
    h(
      "button",
      { class: "chip", "aria-pressed": on ? "true" : "false", onclick: () => change(changed) },
      label,
      number === null ? null : h("b", null, number),
    );
  const outcomes = OUTCOMES.filter((outcome) => counts.outcome[outcome])
    .map((outcome) => [outcome, counts.outcome[outcome]])
    .map(([outcome, number]) =>
      chip(outcome, number, query.outcome === outcome, { outcome: query.outcome === outcome ? "" : outcome }),
    );
  const only = Object.entries(counts.only)
    .filter(([what, number]) => number > 0 || query.only === what)
    .map(([what, number]) => h("option", { value: what, selected: query.only === what }, `${ONLY[what]} (${number})`));
  const stops =
    Object.keys(counts.stop).length > 1 || query.stop
      ? h(
          "select",
          { "aria-label": "Stop reason", onchange: (event) => change({ stop: event.target.value }) },
          h("option", { value: "" }, "any end"),
          Object.entries(counts.stop).map(([stop, number]) =>
            h("option", { value: stop, selected: query.stop === stop }, `${words(stop)} (${number})`),
          ),
        )
      : null;
  return [
    outcomes,
    h(
      "select",
      { "aria-label": "Which traces", onchange: (event) => change({ only: event.target.value }) },
      h("option", { value: "" }, "all traces"),
      only,
    ),
    stops,
    h(
      "select",
      { "aria-label": "Order", onchange: (event) => change({ order: event.target.value }) },
      Object.entries(ORDERS)
        .filter(([order]) => order !== "-mistakes" || counts.only.mistakes)
        .map(([order, label]) => h("option", { value: order, selected: (query.order || "place") === order }, label)),
    ),
    ["low", "task"]
      .filter((one) => query[one])
      .map((one) =>
        chip(
          one === "low"
            ? `reward ${query.low === query.high ? query.low : `${query.low} to ${query.high}`} ✕`
            : `${query.task} ✕`,
          null,
          true,
          one === "low" ? { low: "", high: "" } : { task: "" },
        ),
      ),
  ];
}

// One trace, turn by turn.

import { board, FORCED } from "./board.js";
import { copy, h, put } from "./dom.js";
import { count, duration, figure, short, words } from "./format.js";
import { notice, outcomeMark } from "./parts.js";
import { selection, traceAddress } from "./route.js";
import { drawTurn, said, VERDICTS } from "./turns.js";

const MISTAKES = ["blunder", "missed_win", "refused"];
const WORST = ["blunder", "missed_win", "refused", "inaccuracy", "best"];
let withTokens = false;

// place: {run, folder, query, next(by), step(by)}.
export function reader(root, trace, place) {
  const verdicts = trace.turns.map(verdict);
  let at = null;
  const strip = h("nav", { class: "strip", "aria-label": "Turns" });
  const turns = h("div", { class: "turns" });
  const elements = [];

  const onBoard = trace.turns.some((turn) => turn.calls.some((call) => call.values && call.board));

  function draw() {
    put(
      turns,
      prompt(trace),
      onBoard ? legend() : null,
      trace.turns.map((turn, number) => {
        elements[number] = drawTurn(turn, number, verdicts[number], withTokens);
        return elements[number];
      }),
      ending(trace),
    );
    put(
      strip,
      trace.turns.map((turn, number) =>
        h(
          "button",
          {
            class: `pill ${verdicts[number] || "none"}`,
            onclick: () => move(number),
            title: `turn ${number + 1}${verdicts[number] ? `: ${VERDICTS[verdicts[number]][0]}` : ""}`,
            "aria-label": `Turn ${number + 1}${verdicts[number] ? `, ${VERDICTS[verdicts[number]][0]}` : ""}`,
          },
          number + 1,
        ),
      ),
    );
    mark();
  }

  function mark() {
    elements.forEach((element, number) => element.classList.toggle("current", number === at));
    [...strip.children].forEach((element, number) =>
      element.setAttribute("aria-current", number === at ? "step" : "false"),
    );
  }

  function move(number) {
    at = number;
    history.replaceState(null, "", traceAddress(place.run, trace.n, { ...selection(place.query), turn: number + 1 }));
    mark();
    elements[at]?.scrollIntoView({
      block: "center",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  const wrong = (number) => MISTAKES.includes(verdicts[number]);
  const controls = {
    n: trace.n,
    turn(by) {
      if (!trace.turns.length) return;
      move(
        Math.max(0, Math.min(trace.turns.length - 1, at === null ? (by > 0 ? 0 : trace.turns.length - 1) : at + by)),
      );
    },
    mistake(by) {
      let number = at === null ? (by > 0 ? 0 : trace.turns.length - 1) : at + by;
      while (number >= 0 && number < trace.turns.length && !wrong(number)) number += by;
      if (wrong(number)) move(number);
      else place.next(by);
    },
    tokens() {
      withTokens = !withTokens;
      draw();
    },
    show(asked) {
      if (asked === "first" || asked === "last") {
        at = null;
        controls.mistake(asked === "first" ? 1 : -1);
      } else if (/^\d{1,6}$/.test(asked || "") && trace.turns[Number(asked) - 1]) move(Number(asked) - 1);
    },
  };

  const sampled = trace.turns.some((turn) => turn.tokens);
  const wrongs = verdicts.filter((one) => MISTAKES.includes(one)).length;
  const link = h(
    "button",
    {
      class: "button small",
      onclick: () => copy(`mcpgym show ${quoted(place.folder)} --index ${trace.n}`, link),
      title: `mcpgym show ${place.folder} --index ${trace.n}`,
    },
    "copy command",
  );
  put(
    root,
    h(
      "div",
      { class: "reader-head" },
      h(
        "div",
        { class: "heading" },
        outcomeMark(trace.outcome, trace.total),
        h("h1", null, trace.task, h("span", { class: "dim" }, ` seed ${trace.seed}`)),
        h("span", { class: "grow" }),
        h("button", { class: "button small", onclick: () => place.step(-1), title: "Trace before (k)" }, "‹ before"),
        h("button", { class: "button small", onclick: () => place.step(1), title: "Next trace (j)" }, "next ›"),
      ),
      h("p", { class: "facts-line" }, facts(trace)),
      h(
        "div",
        { class: "tools" },
        strip,
        h("span", { class: "grow" }),
        sampled
          ? h(
              "button",
              { class: "button small", onclick: controls.tokens, title: "Tokens with their probabilities (t)" },
              "tokens",
            )
          : null,
        link,
        h(
          "button",
          {
            class: `button small${wrongs ? " primary" : ""}`,
            onclick: () => controls.mistake(1),
            title: "Next mistake, here or in a later trace (n)",
          },
          `next mistake${wrongs ? ` (${wrongs} here)` : ""}`,
        ),
      ),
    ),
    trace.note ? notice(trace.note, "warn") : null,
    turns,
  );
  draw();
  return controls;
}

function verdict(turn) {
  const found = turn.calls
    .map((call) => call.values?.verdict || (call.answer?.error ? "refused" : null))
    .filter(Boolean);
  return WORST.find((one) => found.includes(one)) || null;
}

function facts(trace) {
  const components = Object.entries(trace.components).map(([name, value]) =>
    h("span", null, `${words(name)} `, h("b", null, short(value))),
  );
  return [
    h("span", null, "reward ", h("b", null, trace.total === null ? "none" : figure(trace.total, 2))),
    ...components,
    h("span", null, `${words(trace.stop)} after ${count(trace.turns.length, "turn")}`),
    trace.usage.prompt || trace.usage.completion
      ? h("span", null, `${trace.usage.prompt} tokens read, ${trace.usage.completion} written`)
      : null,
    trace.seconds ? h("span", null, duration(trace.seconds)) : null,
    trace.signed ? h("span", null, "signed") : null,
    trace.conditions ? h("span", null, trace.conditions) : null,
  ];
}

function prompt(trace) {
  return h(
    "div",
    { class: "prompt" },
    trace.prompt.map((message) =>
      message.role === "system"
        ? h("details", { class: "message system" }, h("summary", null, "system"), h("pre", null, message.text))
        : h("div", { class: `message ${message.role}` }, h("div", { class: "who" }, message.role), said(message)),
    ),
  );
}

function legend() {
  const letter = (forced) => h("span", { class: `letter ${forced}` }, FORCED[forced][0]);
  return h(
    "p",
    { class: "legend dim" },
    h("span", null, letter("win"), " a win can be forced"),
    h("span", null, letter("draw"), " a draw"),
    h("span", null, letter("loss"), " can be lost"),
    h("span", null, "% wins against random play"),
    h("span", null, h("i", { class: "ring best" }), " best"),
    h("span", null, h("i", { class: "ring played" }), " played"),
  );
}

function ending(trace) {
  return h(
    "div",
    { class: "ending" },
    trace.board ? board(trace.board, null, true) : null,
    h(
      "div",
      null,
      h("b", null, trace.outcome || (trace.total === null ? "unscored" : "scored")),
      h("div", { class: "dim" }, `ended: ${words(trace.stop)}`),
      trace.error ? h("div", { class: "bad-text" }, `${trace.error.kind}: ${trace.error.message}`) : null,
    ),
  );
}

function quoted(path) {
  return /^[\w./@:+,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

// A board of nine cells, and on it what each legal move is worth.

import { h } from "./dom.js";
import { percent } from "./format.js";

const LINES = [
  [0, 1, 2],
  [3, 4, 5],
  [6, 7, 8],
  [0, 3, 6],
  [1, 4, 7],
  [2, 5, 8],
  [0, 4, 8],
  [2, 4, 6],
];
export const FORCED = {
  win: ["W", "a win can be forced"],
  draw: ["D", "a draw can be forced, no more"],
  loss: ["L", "it can be lost against best play"],
};

export function valueText(move) {
  return `${FORCED[move.forced][1]}; against random play it wins ${percent(move.win)}, draws ${percent(move.draw)}`;
}

// cells: nine letters X, O or a dot. values: of the decision that was made here, if they are known.
export function board(cells, values = null, small = false) {
  const moves = new Map((values?.moves || []).map((move) => [move.act, move]));
  const won = new Set(
    LINES.filter(([a, b, c]) => cells[a] !== "." && cells[a] === cells[b] && cells[b] === cells[c]).flat(),
  );
  const cell = (mark, place) => {
    const move = moves.get(String(place));
    const played = values !== null && values.played === String(place);
    if (mark !== ".")
      return h(
        "div",
        {
          class: `cell ${mark === "X" ? "x" : "o"}${won.has(place) ? " won" : ""}`,
          role: "img",
          "aria-label": `${place}: ${mark}`,
        },
        mark,
      );
    if (!move)
      return h("div", { class: "cell free", role: "img", "aria-label": `${place}: free` }, small ? "" : String(place));
    const text = `${place}${played ? " (played)" : ""}: ${valueText(move)}${move.best ? "; nothing is better" : ""}`;
    return h(
      "div",
      {
        class: `cell move ${move.forced}${move.best ? " best" : ""}${played ? " played" : ""}`,
        role: "img",
        "aria-label": text,
        title: text,
      },
      h("b", null, FORCED[move.forced][0]),
      h("small", null, percent(move.win, 0)),
    );
  };
  return h("div", { class: `board${small ? " small" : ""}` }, [...cells].map(cell));
}

// Legal moves as a table, for games that are not played on nine cells.
export function moveTable(values) {
  const ranked = [...values.moves].sort(
    (a, b) =>
      Number(b.best) - Number(a.best) ||
      Number(b.forced !== "loss") - Number(a.forced !== "loss") ||
      b.win - a.win ||
      b.draw - a.draw,
  );
  return h(
    "table",
    { class: "moves" },
    h(
      "tbody",
      null,
      ranked.map((move) =>
        h(
          "tr",
          { class: `${move.forced}${move.act === values.played ? " played" : ""}`, title: valueText(move) },
          h("td", null, h("span", { class: "letter" }, FORCED[move.forced][0])),
          h("td", null, h("code", null, move.act)),
          h(
            "td",
            { class: "chance" },
            h("i", { class: "win", style: { "flex-grow": String(move.win) } }),
            h("i", { class: "draw", style: { "flex-grow": String(move.draw) } }),
            h("i", { class: "loss", style: { "flex-grow": String(Math.max(0, 1 - move.win - move.draw)) } }),
          ),
          h("td", { class: "number" }, percent(move.win, 0)),
          h("td", { class: "dim" }, move.act === values.played ? "played" : move.best ? "best" : ""),
        ),
      ),
    ),
  );
}

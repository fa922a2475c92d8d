// One turn of a trace: what was thought and said, each call with its answer, and what its move was worth.

import { board, FORCED, moveTable, valueText } from "./board.js";
import { h } from "./dom.js";
import { percent } from "./format.js";
import { tokenText } from "./tokens.js";

export const VERDICTS = {
  best: ["best", "nothing is better"],
  inaccuracy: ["weaker", "another move wins more often"],
  missed_win: ["missed win", "a win could be forced before this move, and not after it"],
  blunder: ["losing move", "the game was safe before this move, and can be lost after it"],
  refused: ["refused", "the call was refused"],
};

// Columns or indentation: a table, a traceback, a listing, whose letters must stand below each other.
const ALIGNED = /[^\s.!?:] {2,}\S|^(?: {2,}|\t)\S/m;

// A message's words and, drawn, its board.
export function said(message, withBoard = true) {
  const style = [message.error ? "error" : "", ALIGNED.test(message.words || "") ? "aligned" : ""].join(" ").trim();
  return [
    message.words ? h("pre", { class: style || null }, message.words) : null,
    withBoard && message.board ? board(message.board, null, true) : null,
  ];
}

export function drawTurn(turn, number, found, withTokens) {
  return h(
    "article",
    { class: `turn ${found || ""}`, id: `turn-${number + 1}`, "aria-label": `Turn ${number + 1}` },
    h(
      "div",
      { class: "turn-head" },
      h("span", { class: "who" }, `turn ${number + 1}`),
      turn.given ? h("span", { class: "tag" }, "given") : null,
      found ? h("span", { class: `tag ${found}`, title: VERDICTS[found][1] }, VERDICTS[found][0]) : null,
    ),
    withTokens && turn.tokens
      ? tokenText(turn.tokens)
      : [
          turn.thoughts.map((thought) => h("pre", { class: "thought" }, thought)),
          turn.said ? h("pre", { class: "words" }, turn.said) : null,
        ],
    turn.calls.map((call) => drawCall(call)),
    turn.after.map((message) =>
      h("div", { class: `message ${message.role}` }, h("div", { class: "who" }, message.role), said(message)),
    ),
  );
}

function drawCall(call) {
  const values = call.values;
  const onBoard = values && call.board && values.moves.every((move) => /^[0-8]$/.test(move.act));
  const side = values
    ? onBoard
      ? board(call.board, values)
      : moveTable(values)
    : call.board
      ? board(call.board, null)
      : null;
  return h(
    "div",
    { class: "call" },
    h(
      "div",
      { class: "call-text" },
      h("code", { class: "call-name" }, call.shown),
      call.blocks.map((block) => [
        call.blocks.length > 1 ? h("div", { class: "who" }, block.name) : null,
        h("pre", { class: "block" }, block.text),
      ]),
      values ? judged(values) : null,
      call.answer
        ? h(
            "div",
            { class: `answer${call.answer.error ? " error" : ""}` },
            h("div", { class: "who" }, call.answer.error ? "error" : "result"),
            said(call.answer, !values && !call.board),
          )
        : h("p", { class: "dim" }, "no answer"),
    ),
    side ? h("div", { class: "call-side" }, side) : null,
  );
}

function judged(values) {
  if (values.played === null) return h("p", { class: "dim" }, `Before it, ${FORCED[values.before.forced][1]}.`);
  const [before, after] = [values.before, values.after];
  const better = values.moves.filter((move) => move.best).map((move) => move.act);
  return h(
    "p",
    { class: "judged" },
    h("span", { class: `letter ${before.forced}`, title: valueText(before) }, FORCED[before.forced][0]),
    " → ",
    h("span", { class: `letter ${after.forced}`, title: valueText(after) }, FORCED[after.forced][0]),
    h("span", { class: "dim" }, ` wins against random play: ${percent(before.win)} → ${percent(after.win)}`),
    values.verdict === "best" ? null : h("span", null, ` · best: ${better.join(", ")}`),
  );
}

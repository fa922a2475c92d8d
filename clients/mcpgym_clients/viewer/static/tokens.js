// What a local policy sampled, token by token, the unlikely ones marked.

import { h } from "./dom.js";

// A token is [text or null, log-probability, id].
export function tokenText(tokens) {
  const mean = tokens.reduce((sum, token) => sum + token[1], 0) / tokens.length;
  const least = tokens.reduce((found, token) => (token[1] < found[1] ? token : found));
  return h(
    "div",
    { class: "tokens" },
    h("div", { class: "token-text" }, tokens.map(one)),
    h(
      "div",
      { class: "dim" },
      `${tokens.length} tokens · mean log-prob ${mean.toFixed(3)} · least likely ${JSON.stringify(least[0] ?? `#${least[2]}`)} at ${chance(least[1])}`,
    ),
  );
}

function one([text, logprob, id]) {
  const heat = Math.min(5, Math.floor(-logprob / 0.35));
  const shown = text === null ? `#${id} ` : text === "" ? "·" : text.replaceAll("\n", "↵\n");
  return h(
    "span",
    { class: `token heat${heat}`, title: `${chance(logprob)} · log-prob ${logprob.toFixed(4)} · id ${id}` },
    shown,
  );
}

function chance(logprob) {
  const share = 100 * Math.exp(logprob);
  return `${share >= 99.95 ? "≈100" : share.toFixed(share < 1 ? 2 : 1)} %`;
}

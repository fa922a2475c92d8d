// The page of a game: the environment's app or its tools' forms, what was said, what moves are worth, and the end.
// The game is on the server; its id stands in the address, so a reload keeps it and a new tab is a new game.

import { get, post } from "./api.js";
import { AppHost } from "./app_host.js";
import { moveTable } from "./board.js";
import { announce, h, put } from "./dom.js";
import { toolForm, wordsForm } from "./forms.js";
import { applyTheme, themeButton } from "./theme.js";

const PACE = 900; // milliseconds between the moves of policies that one watches
const state = { about: null, game: null, values: false, running: true, busy: false, trouble: "", level: "" };
let host = null;
let timer = null;
const parts = {};

const bar = document.getElementById("bar");
const page = document.getElementById("page");

// ---- What is done.

async function doing(work) {
  if (state.busy) return undefined;
  state.busy = true;
  state.trouble = "";
  show();
  try {
    return await work();
  } catch (problem) {
    state.trouble = problem.message;
    state.running = false;
    throw problem;
  } finally {
    state.busy = false;
    await weigh().catch(() => {});
    show();
  }
}

async function acted(name, more) {
  const game = await post(name, { game: state.game.id, version: state.game.version, ...more });
  take(game);
  if (game.behind && name !== "step") throw new Error("The game had gone on in another tab; this is how it stands now.");
  return game.result;
}

const quietly = (work) => doing(work).catch(() => {});
const call = async (name, fields) => (await quietly(() => acted("call", { name, fields })))?.isError === false;
const say = async (text) => (await quietly(() => acted("say", { text }))) !== undefined;
const step = () => quietly(() => acted("step", {}));

// What the app asks for: it is told of the problem, and the page shows none of its own.
async function asked(name, more) {
  if (state.busy) throw new Error("One thing after another, please.");
  return (await doing(() => acted(name, more))) ?? {};
}

function take(game) {
  const before = state.game;
  state.game = game;
  if (before?.id !== game.id || before.version !== game.version) state.worth = null;
  history.replaceState(null, "", `#${game.id}`);
  if (before?.id === game.id && game.turn === "over" && before.turn !== "over") announce(ending(game));
}

function begin(level = state.level) {
  return quietly(async () => {
    state.running = true;
    state.level = level;
    take(await post("new", { level }));
  });
}

async function weigh() {
  const { game, values } = state;
  const found = values && game && game.turn !== "over" ? await get("values", { game: game.id }) : null;
  if (state.game === game) state.worth = found; // else it has gone on meanwhile, and is weighed anew
}

function toggleValues() {
  state.values = !state.values;
  return weigh().catch((problem) => { state.trouble = problem.message; }).finally(show);
}

function schedule() {
  clearTimeout(timer);
  const { game, about } = state;
  if (!game || game.turn !== "policy" || state.busy || !state.running) return;
  timer = setTimeout(step, about.mode === "against" ? 250 : PACE);
}

// ---- What is shown.

const ending = (game) =>
  [game.verdict, game.score ? `Score ${game.score.total === null ? "none" : game.score.total}` : ""].join(" ").trim();

function head() {
  const { about, game } = state;
  const watching = about.mode === "watch" || about.mode === "match";
  const levels = about.levels.length
    ? h(
        "label",
        null,
        "Opponent ",
        h(
          "select",
          { id: "level", onchange: (event) => (state.busy ? show() : begin(event.target.value)) },
          ["", ...about.levels].map((level) => h("option", { value: level, selected: level === state.level }, level || "as configured")),
        ),
      )
    : null;
  const button = (id, text, does, more = {}) => h("button", { class: "act", type: "button", id, onclick: does, ...more }, text);
  const busy = { "aria-disabled": String(state.busy) }; // not disabled, which would take the focus away
  return [
    h("h1", null, about.environment),
    levels,
    watching && game?.turn === "policy"
      ? [
          button("next", "Next move", () => { state.running = false; step(); }, busy),
          button("pause", state.running ? "Pause" : "Play on", () => { state.running = !state.running; show(); }),
        ]
      : null,
    about.values && button("values", "Values", toggleValues, {
      "aria-pressed": String(state.values), title: "What each move is worth (v)",
    }),
    button("new", "New game", () => begin(), busy),
    h("span", { class: "dim" }, `${about.description} ${game ? `· ${game.title}` : ""}`),
  ];
}

function trouble() {
  if (!state.trouble) return null;
  const again = state.game?.turn === "policy" ? h("button", { class: "act", type: "button", onclick: () => { state.running = true; step(); } }, "Try again") : null;
  return h("div", { class: "play-trouble", role: "alert" }, state.trouble, again);
}

function ended(game) {
  if (game.turn !== "over") return null;
  const score = game.score;
  const components = score ? Object.entries(score.components).map(([name, value]) => `${name} ${value === null ? "none" : value}`).join(", ") : "";
  return h(
    "div",
    { class: "play-ended" },
    h("p", { class: "play-verdict" }, game.verdict),
    score ? h("p", null, "Score ", h("b", { id: "score" }, score.total === null ? "none" : String(Number(score.total.toPrecision(3)))), " ", h("span", { class: "dim" }, components)) : null,
    h("p", { class: "dim" }, "The same again: ", h("code", null, game.again.split(" ").map((word) => [h("span", { class: "play-word" }, word), " "]))),
  );
}

const NAMES = { system: "rules", user: "task", you: "you", policy: "policy", tool: "answer", note: "note" };

function spoken(entry) {
  return h(
    "div",
    { class: `play-said ${entry.who}${entry.wrong ? " wrong" : ""}` },
    h("div", { class: "who" }, NAMES[entry.who], entry.who === "tool" ? ` of ${entry.call}` : "", entry.wrong ? " (refused)" : ""),
    entry.call && entry.who !== "tool" ? h("pre", null, entry.call) : null,
    entry.text ? h("pre", null, entry.text) : null,
  );
}

function worth() {
  if (!state.values) return null;
  const found = state.worth;
  if (!found) return null;
  if (!found.moves.length) return h("p", { class: "dim", id: "worth" }, found.note || "There is nothing to weigh now.");
  const moves = found.moves.map((move) => ({ draw: 0, ...move }));
  const forced = moves.some((move) => move.win === undefined);
  return h(
    "section",
    { id: "worth" },
    h("h2", null, "What each move is worth"),
    forced
      ? h("ul", null, moves.map((move) => h("li", { class: move.forced }, h("code", null, move.act), ` ${FORCED[move.forced]}${move.best ? "; nothing is better" : ""}`)))
      : moveTable({ moves, played: null }),
    h("p", { class: "dim" }, "W: a win can be forced. D: a draw, no more. L: it can be lost. The share is of wins against random play."),
  );
}
const FORCED = { win: "wins by force", draw: "draws by force", loss: "can be lost" };

function controls(game) {
  if (game.part !== "policy" || game.turn !== "person") return null;
  const forms = game.tools.map((tool) => toolForm(tool, call));
  const words = wordsForm(say);
  if (!game.tools.length) return words;
  const inWords = h("details", null, h("summary", null, "Answer in words instead"), words);
  return host ? h("details", null, h("summary", null, "Tools as forms"), forms, inWords) : [forms, inWords];
}

function show() {
  const { about, game } = state;
  const focused = parts.head.contains(document.activeElement) ? document.activeElement.id : "";
  put(parts.head, head());
  if (focused) document.getElementById(focused)?.focus();
  put(parts.trouble, trouble());
  if (game) {
    put(parts.ended, ended(game));
    put(parts.worth, worth());
    if (parts.shown !== `${game.id} ${game.version}`) {
      parts.shown = `${game.id} ${game.version}`;
      put(parts.log, game.said.map(spoken));
      parts.log.scrollTop = parts.log.scrollHeight;
    }
    const needed = `${game.id} ${game.turn}`;
    if (parts.needed !== needed) { // not after each call: what is half typed in another form stays
      parts.needed = needed;
      put(parts.controls, controls(game));
    }
    for (const control of parts.controls.querySelectorAll("button")) control.setAttribute("aria-disabled", String(state.busy));
    host?.show(game.board, game.turn === "over", {
      part: game.part,
      choices: game.choices,
      waiting: game.turn === "policy",
      moves: state.values && state.worth ? state.worth.moves : [],
    });
  }
  page.setAttribute("aria-busy", String(state.busy));
  document.title = game?.turn === "over" ? `${game.verdict} · ${about.environment}` : `${about.environment} · mcpgym play`;
  schedule();
}

async function open() {
  applyTheme();
  put(bar, h("span", { class: "brand" }, h("span", { class: "logo", "aria-hidden": "true" }, "M"), "mcpgym play"), h("span", { class: "grow" }), themeButton());
  state.about = await get("about");
  if (state.about.app) {
    host = new AppHost(state.about.app, `${state.about.environment}: the game`, {
      call: (name, given) => asked("call", { name, arguments: given }),
      choose: (act) => asked("choose", { act }),
      values: async () => (state.about.values ? toggleValues() : undefined),
    });
    new MutationObserver(show).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }
  for (const name of ["head", "trouble", "ended", "worth", "controls", "log"]) parts[name] = h("div", null);
  parts.log.className = "play-log";
  parts.log.setAttribute("role", "log");
  parts.log.setAttribute("aria-label", "What was said");
  parts.log.tabIndex = 0;
  put(
    page,
    parts.head,
    parts.trouble,
    host
      ? h("div", { class: "play-column" }, host.element, parts.ended, parts.controls)
      : h("div", { class: "play-column" }, parts.log),
    host
      ? h("div", { class: "play-column" }, parts.worth, parts.log)
      : h("div", { class: "play-column" }, parts.ended, parts.worth, parts.controls),
  );
  parts.head.className = "play-head play-whole";
  parts.trouble.className = "play-whole";
  const id = location.hash.slice(1);
  try {
    if (id) take(await get("game", { game: id }));
  } catch {
    state.trouble = ""; // a game of another server: begin anew
  }
  if (state.game) show();
  else await begin();
  document.documentElement.dataset.ready = "yes";
}

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "v" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && state.about?.values) toggleValues();
});
document.addEventListener("visibilitychange", async () => {
  if (document.hidden || !state.game || state.busy) return;
  const now = await get("game", { game: state.game.id }).catch(() => null);
  if (now && !state.busy && now.version !== state.game.version) {
    take(now);
    await weigh().catch(() => {});
    show();
  }
});

open().catch((problem) => put(page, h("div", { class: "play-trouble play-whole", role: "alert" }, problem.message)));

// One evaluation: its traces on the left, and on the right what they say together, or one of them.

import { announce, h, put } from "./dom.js";
import { count, figure, words } from "./format.js";
import { filters } from "./filters.js";
import { highlight } from "./highlight.js";
import { LongList } from "./list.js";
import { overview } from "./overview.js";
import { notice, outcomeMark } from "./parts.js";
import { reader } from "./reader.js";
import { runAddress, runsAddress, selection, traceAddress } from "./route.js";

const AHEAD = 3000;
const REFRESH = 3000;

export function runPage(root, source) {
  let name = null;
  let details = null;
  let query = {};
  let n = null;
  let open = null;
  let asked = 0;
  let waiting = null;
  let target = null; // where steps through the list lead, while what they lead to is not shown yet
  const search = h("input", {
    type: "search",
    placeholder: "Search what was said",
    "aria-label": "Search what was said",
    oninput: () => later(),
  });
  const chips = h("div", { class: "chips" });
  const summary = h("div", { class: "list-summary dim" });
  const content = h("div", { class: "content" });
  const list = new LongList(
    46,
    (offset) => source.traces(name, selection(query), { offset }),
    drawRow,
    (row) => go(row.n),
  );
  const side = h(
    "aside",
    { class: "side", "aria-label": "Traces of this run" },
    h("div", { class: "side-head" }, search, chips, summary),
    list.element,
  );
  put(root, h("div", { class: "split" }, side, content));

  function drawRow(row) {
    const marks = [];
    if (row.blunders)
      marks.push(h("span", { class: "flag bad", title: "moves that gave the game away" }, `${row.blunders}✕`));
    if (row.missed) marks.push(h("span", { class: "flag warn", title: "wins that were missed" }, `${row.missed}?!`));
    if (row.errors) marks.push(h("span", { class: "flag warn", title: "calls that were refused" }, `${row.errors}!`));
    return h(
      "div",
      { class: "row-in" },
      outcomeMark(row.outcome, row.total),
      h(
        "div",
        { class: "row-text" },
        h("div", { class: "row-title" }, row.task),
        h(
          "div",
          { class: "dim" },
          [
            row.n,
            `seed ${row.seed}`,
            count(row.turns, "turn"),
            row.unscored ? words(row.unscored) : row.stop === "done" ? "" : words(row.stop),
          ]
            .filter((part) => part !== "")
            .join(" · "),
        ),
      ),
      h(
        "div",
        { class: "row-end" },
        h("b", null, row.total === null ? "–" : figure(row.total, 2)),
        h("div", null, marks),
      ),
    );
  }

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ q: search.value }), 250);
  }

  function change(changed) {
    const asked = { ...selection({ ...query, ...changed }) };
    location.replace(n === null ? runAddress(name, asked) : traceAddress(name, n, asked));
  }

  function go(number, more = {}) {
    target = null;
    location.hash = traceAddress(name, number, { ...selection(query), ...more });
  }

  function drawChips() {
    put(chips, filters(details.counts, query, change));
  }

  function drawSummary(answer) {
    put(
      summary,
      answer.matching === answer.of
        ? count(answer.of, "trace")
        : `${answer.matching.toLocaleString("en-US")} of ${count(answer.of, "trace")}`,
      Object.keys(selection(query)).length
        ? h(
            "button",
            {
              class: "plain",
              onclick: () => change({ only: "", outcome: "", stop: "", task: "", low: "", high: "", q: "", order: "" }),
            },
            "show all",
          )
        : null,
    );
  }

  async function show(route) {
    const mine = (asked += 1);
    const sameRun = route.run === name;
    const sameList = sameRun && JSON.stringify(selection(route.query)) === JSON.stringify(selection(query));
    const sameTrace = sameRun && route.n === n && open?.n === route.n && n !== null;
    [name, query, n] = [route.run, route.query, route.n];
    if (document.activeElement !== search) search.value = query.q || "";
    root.classList.toggle("reading", n !== null);
    try {
      if (!sameRun) {
        put(content, h("p", { class: "dim" }, "Reading…"));
        details = await source.run(name);
        if (mine !== asked) return;
        weigh(name);
        follow(name);
      }
      drawChips();
      if (!sameList) {
        const answer = await source.traces(name, selection(query), n === null ? {} : { around: n });
        if (mine !== asked) return;
        list.reset(answer);
        target = null;
        drawSummary(answer);
        if (query.q) announce(count(answer.matching, "trace"));
      }
      if (n === null) {
        open = null;
        put(content, overview(details, change));
        list.mark(null);
      } else if (sameTrace) {
        open.show(route.query.turn);
      } else {
        if (list.find(n) < 0) {
          const answer = await source.traces(name, selection(query), { around: n });
          if (mine !== asked) return;
          if (answer.at !== null) list.take(answer);
        }
        list.mark(n);
        if (list.find(n) === target) target = null;
        const trace = await source.trace(name, n);
        if (mine !== asked) return;
        open = reader(content, trace, { run: name, folder: details.card.folder, query, next: nextMistake, step });
        open.show(query.turn);
        highlight(content, query.q);
        if (query.turn === undefined) content.scrollTop = 0;
        if (query.turn === undefined) announce(`trace ${n}, ${trace.task}`);
      }
    } catch (problem) {
      if (mine === asked)
        put(content, notice(problem.message, "bad"), h("p", null, h("a", { href: runsAddress() }, "All runs")));
    }
  }

  // The moves of all traces are weighed while a reader looks at the first ones.
  async function weigh(run) {
    const found = await source.weigh(run).catch(() => null);
    if (!found || run !== name) return;
    Object.assign(details, { counts: found.counts, weighed: found.weighed ? found : null });
    drawChips();
    const answer = await source.traces(run, selection(query), n === null ? {} : { around: n });
    if (run !== name) return;
    list.pages.clear(); // not before: keys find their place in them
    list.take(answer);
    list.paint();
    drawSummary(answer);
    if (n === null) put(content, overview(details, change));
  }

  // A run that goes on is read again from time to time.
  async function follow(run) {
    while (source.live && run === name && details.card.complete === null && root.contains(side)) {
      await new Promise((wake) => {
        setTimeout(wake, document.hidden ? 4 * REFRESH : REFRESH);
      });
      const found = run === name && root.contains(side) ? await source.run(run).catch(() => null) : null;
      if (!found || run !== name || (found.traces === details.traces && found.card.complete === details.card.complete))
        continue;
      details = found;
      await weigh(run);
    }
  }

  async function step(by) {
    const from = target ?? (n === null ? (by > 0 ? -1 : 0) : list.find(n));
    const place = Math.max(0, Math.min(list.size - 1, from + by));
    target = place;
    const row = await list.row(place);
    if (!row || target !== place) return;
    go(row.n);
    target = row.n === n ? null : place;
  }

  // The next trace of the list, in a direction, that has a mistake in it.
  async function nextMistake(by) {
    let place = (n === null ? -1 : list.find(n)) + by;
    for (let tried = 0; tried < AHEAD; tried += 1, place += by) {
      const row = await list.row(place);
      if (!row) break;
      if (row.blunders || row.missed || row.errors) {
        go(row.n, { turn: by > 0 ? "first" : "last" });
        return;
      }
    }
    announce("there is no further mistake in this list");
  }

  const keys = [
    { keys: ["j", "ArrowDown"], does: "next trace", run: () => step(1) },
    { keys: ["k", "ArrowUp"], does: "trace before", run: () => step(-1) },
    { keys: ["ArrowRight", "l"], does: "next turn", run: () => open?.turn(1) },
    { keys: ["ArrowLeft", "h"], does: "turn before", run: () => open?.turn(-1) },
    {
      keys: ["n"],
      does: "next mistake, in this trace or a later one",
      run: () => (open ? open.mistake(1) : nextMistake(1)),
    },
    { keys: ["p"], does: "mistake before", run: () => (open ? open.mistake(-1) : nextMistake(-1)) },
    { keys: ["t"], does: "tokens with their probabilities", run: () => open?.tokens() },
    {
      keys: ["b"],
      does: "only what went badly, or all",
      run: () => change({ only: query.only === "bad" ? "" : "bad" }),
    },
    { keys: ["/"], does: "search what was said", run: () => search.focus() },
    {
      keys: ["o", "Escape"],
      does: "the run as a whole",
      run: () => (n === null ? (location.hash = runsAddress()) : (location.hash = runAddress(name, selection(query)))),
    },
  ];

  return {
    keys,
    get title() {
      return n === null ? name : `${name} · ${n}`;
    },
    show,
    close: () => clearTimeout(waiting),
  };
}

// The page: which place the address means, and what stands around it.

import { comparePage } from "./compare.js";
import { h, put } from "./dom.js";
import { help, listen, setKeys } from "./keys.js";
import { notice } from "./parts.js";
import { here, runAddress, runsAddress } from "./route.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { openSource } from "./source.js";
import { applyTheme, themeButton, turnTheme } from "./theme.js";
import { trainingPage } from "./training.js";

const EVERYWHERE = [
  {
    keys: ["g"],
    does: "all runs",
    run: () => {
      location.hash = runsAddress();
    },
  },
  { keys: ["d"], does: "light or dark", run: turnTheme },
  { keys: ["?"], does: "this list", run: help },
];
const PAGES = {
  runs: runsPage,
  compare: comparePage,
  evaluation: runPage,
  training: trainingPage,
  certificate: trainingPage,
};

async function begin() {
  applyTheme();
  listen();
  const root = document.getElementById("page");
  const bar = document.getElementById("bar");
  let source;
  let open = null;
  const kinds = new Map();

  // Which page shows a run depends on what it is.
  async function kindOf(run) {
    if (!kinds.has(run)) for (const card of (await source.runs()).runs) kinds.set(card.name, card.kind);
    return kinds.get(run) || "evaluation";
  }

  async function show() {
    const route = here();
    const kind = route.page === "run" ? await kindOf(route.run) : route.page;
    if (open?.kind !== kind) {
      open?.page.close();
      root.className = kind;
      open = { kind, page: PAGES[kind](root, source) };
      setKeys(open.page.keys, EVERYWHERE);
      root.focus({ preventScroll: true });
    }
    put(
      bar,
      h(
        "a",
        { class: "brand", href: runsAddress() },
        h("span", { class: "logo", "aria-hidden": "true" }, "M"),
        "mcpgym",
      ),
      h(
        "nav",
        { "aria-label": "Where you are" },
        h("a", { href: runsAddress() }, "runs"),
        route.page === "run" ? [h("span", null, "/"), h("a", { href: runAddress(route.run) }, route.run)] : null,
        route.page === "run" && route.n !== null ? [h("span", null, "/"), h("span", null, route.n)] : null,
        route.page === "compare" ? [h("span", null, "/"), h("span", null, "compare")] : null,
      ),
      h("span", { class: "grow" }),
      source.live ? null : h("span", { class: "dim only-wide" }, "exported page"),
      h("button", { class: "icon", title: "Keyboard (?)", "aria-label": "Keyboard", onclick: help }, "?"),
      themeButton(),
    );
    await open.page.show(route);
    document.title = `${open.page.title} · mcpgym`;
  }

  const shown = () => show().catch((problem) => put(root, notice(problem.message, "bad")));
  try {
    source = await openSource();
  } catch (problem) {
    put(root, notice(problem.message, "bad"));
    return;
  }
  addEventListener("hashchange", shown);
  await shown();
  document.documentElement.dataset.ready = "yes";
}

begin();

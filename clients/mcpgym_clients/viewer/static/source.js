// Where the page's data comes from: the server that sent the page, or the page itself where it was exported.

import { Embedded } from "./embedded.js";

class Served {
  live = true;

  runs() {
    return this.ask("runs", {});
  }
  run(run) {
    return this.ask("run", { run });
  }
  traces(run, query, place) {
    return this.ask("traces", { run, ...query, ...place });
  }
  trace(run, n) {
    return this.ask("trace", { run, n });
  }
  weigh(run) {
    return this.ask("weigh", { run });
  }
  compare(names) {
    return this.ask(
      "compare",
      {},
      names.map((name) => ["run", name]),
    );
  }

  async ask(what, query, more = []) {
    const search = new URLSearchParams([...Object.entries(query), ...more]);
    let answer;
    try {
      answer = await fetch(`api/${what}?${search}`);
    } catch {
      throw new Error("mcpgym view does not answer any more: was it stopped?");
    }
    const said = await answer.json().catch(() => ({ problem: `the server answered ${answer.status}` }));
    if (!answer.ok) throw new Error(said.problem || `the server answered ${answer.status}`);
    return said;
  }
}

export async function openSource() {
  const index = document.getElementById("index");
  return index ? Embedded.of(index) : new Served();
}

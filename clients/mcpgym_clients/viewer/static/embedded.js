// The data of an exported page: an index, and blocks of traces that are unpacked when one of them is read.
// Which rows a list shows follows the same rules as on the server (selecting.py); a test compares the two.

const PAGE = 100;
const NO_VALUE = Symbol("no value");

async function unpack(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

export class Embedded {
  live = false;
  blocks = new Map();

  static async of(element) {
    if (typeof DecompressionStream === "undefined")
      throw new Error("this browser is too old to unpack the page's data");
    const made = new Embedded();
    made.index = await unpack(element);
    return made;
  }

  async runs() {
    return { runs: this.index.runs };
  }

  async run(name) {
    return this.index.details[name] ?? missing(`there is no run ${name} in this page`);
  }

  async weigh(name) {
    return this.index.weighed[name] ?? missing(`there is no run ${name} in this page`);
  }

  async trace(name, n) {
    const block = this.index.blocks[name]?.[n];
    if (block === undefined) {
      missing(`trace ${n} of ${name} is in the list only: the page was exported without it (see --max-traces)`);
    }
    return (await this.block(block))[n];
  }

  async compare(names) {
    const found = this.index.compared.find((item) => names.every((name, place) => item.names[place] === name));
    return found ?? missing("these two runs are not compared in this page");
  }

  async traces(name, query, place = {}) {
    const all = this.index.rows[name] ?? missing(`there is no run ${name} in this page`);
    let rows = all.filter((row) => takes(row, query));
    if (query.q) rows = await this.saying(name, rows, query.q.toLowerCase());
    rows = inOrder(rows, query.order || "place");
    let offset = place.offset ?? 0;
    let at = null;
    if (place.around !== undefined) {
      at = rows.findIndex((row) => row.n === place.around);
      offset = at < 0 ? 0 : Math.floor(at / PAGE) * PAGE;
      if (at < 0) at = null;
    }
    return { rows: rows.slice(offset, offset + PAGE), offset, matching: rows.length, of: all.length, at };
  }

  async saying(name, rows, text) {
    const said = [];
    for (const row of rows) {
      const block = this.index.blocks[name]?.[row.n];
      if (block !== undefined && (await this.block(block))[row.n].search.includes(text)) said.push(row);
    }
    return said;
  }

  block(number) {
    if (!this.blocks.has(number)) this.blocks.set(number, unpack(document.getElementById(`block-${number}`)));
    return this.blocks.get(number);
  }
}

function takes(row, query) {
  return (
    (!query.only || only(row, query.only)) &&
    (!query.outcome || query.outcome === (row.outcome || "unfinished")) &&
    (!query.stop || query.stop === row.stop) &&
    (!query.task || query.task === row.task) &&
    (!query.low || (row.total !== null && row.total >= Number(query.low))) &&
    (!query.high || (row.total !== null && row.total <= Number(query.high)))
  );
}

function only(row, what) {
  if (what === "unscored") return row.total === null;
  if (what === "penalised") return row.penalised;
  if (what === "errors") return row.errors > 0;
  if (what === "mistakes") return Boolean(row.blunders || row.missed);
  return row.bad;
}

function inOrder(rows, order) {
  const name = order.replace(/^-/, "");
  const sign = order.startsWith("-") ? -1 : 1;
  const key = (row) => {
    if (name === "total") return row.total ?? NO_VALUE;
    if (name === "turns") return row.turns;
    if (name === "mistakes") return row.blunders === null ? NO_VALUE : row.blunders + 0.01 * (row.missed || 0);
    return row.n;
  };
  return [...rows].sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    if ((left === NO_VALUE) !== (right === NO_VALUE)) return left === NO_VALUE ? 1 : -1;
    return (left === NO_VALUE ? 0 : sign * (left - right)) || a.n - b.n;
  });
}

function missing(text) {
  throw new Error(text);
}

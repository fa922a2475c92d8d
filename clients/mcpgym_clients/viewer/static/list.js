// A list of as many traces as there may be: only the rows in view exist, and pages of them come when they are needed.

import { h, put } from "./dom.js";

const PAGE = 100;

// load(offset) gives {rows, matching, offset}; draw(row) an element; choose(row) is called for the row clicked.
export class LongList {
  constructor(height, load, draw, choose) {
    Object.assign(this, { height, load, draw, choose });
    this.pages = new Map();
    this.size = 0;
    this.current = null;
    this.space = h("div", { class: "space" });
    this.element = h("div", { class: "long-list", role: "listbox", "aria-label": "Traces", tabindex: 0 }, this.space);
    this.element.addEventListener("scroll", () => this.paint(), { passive: true });
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  // Begin anew with the first page that is known.
  reset(answer) {
    this.pages.clear();
    this.take(answer);
    this.element.scrollTop = 0;
    this.paint();
  }

  take(answer) {
    this.size = answer.matching;
    this.pages.set(answer.offset / PAGE, answer.rows);
    this.space.style.height = `${this.size * this.height}px`;
  }

  // The row at a place of the list; it is fetched where it is not known.
  async row(place) {
    if (place < 0 || place >= this.size) return null;
    const page = Math.floor(place / PAGE);
    if (!Array.isArray(this.pages.get(page))) await this.fetch(page);
    return this.pages.get(page)?.[place % PAGE] ?? null;
  }

  async fetch(page) {
    if (!this.pages.has(page)) {
      this.pages.set(
        page,
        this.load(page * PAGE).then(
          (answer) => {
            this.take(answer);
            this.paint();
          },
          () => this.pages.delete(page),
        ),
      );
    }
    await this.pages.get(page);
  }

  // Where a trace stands, among the pages that are known.
  find(n) {
    for (const [page, rows] of this.pages) {
      if (!Array.isArray(rows)) continue;
      const place = rows.findIndex((row) => row.n === n);
      if (place >= 0) return page * PAGE + place;
    }
    return -1;
  }

  mark(n) {
    this.current = n;
    const place = this.find(n);
    if (place >= 0) {
      const top = place * this.height;
      const { scrollTop, clientHeight } = this.element;
      if (top < scrollTop || top + this.height > scrollTop + clientHeight) {
        this.element.scrollTop = Math.max(0, top - clientHeight / 2);
      }
    }
    this.paint();
  }

  paint() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - 4);
    const last = Math.min(this.size, Math.ceil((scrollTop + clientHeight) / this.height) + 4);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const page = Math.floor(place / PAGE);
      const known = this.pages.get(page);
      if (!known) this.fetch(page);
      const row = Array.isArray(known) ? known[place % PAGE] : null;
      rows.push(
        h(
          "div",
          {
            class: "row",
            role: "option",
            "aria-setsize": this.size,
            "aria-posinset": place + 1,
            "aria-selected": row !== null && row?.n === this.current ? "true" : "false",
            style: { top: `${place * this.height}px` },
            onclick: row ? () => this.choose(row) : null,
          },
          row ? this.draw(row) : h("span", { class: "dim" }, "…"),
        ),
      );
    }
    put(this.space, rows);
  }
}

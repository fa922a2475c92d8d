// Small pictures of numbers, drawn as SVG or plain boxes; each has a text that says the same.

import { h, s } from "./dom.js";
import { between, figure, OUTCOMES, percent, short } from "./format.js";

// A mean and its interval on an axis from low to high.
export function whisker(mean, interval, low, high, label = "") {
  const width = 120;
  const span = high - low || 1;
  const x = (value) => 4 + (width - 8) * Math.min(1, Math.max(0, (value - low) / span));
  if (mean === null || mean === undefined) return h("span", { class: "dim" }, "–");
  return s(
    "svg",
    {
      class: "whisker",
      viewBox: `0 0 ${width} 16`,
      width,
      height: 16,
      role: "img",
      "aria-label": label || `${figure(mean)}, ${between(interval)}`,
    },
    s("line", { class: "axis", x1: 4, x2: width - 4, y1: 8, y2: 8 }),
    low < 0 && high > 0 ? s("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: 15 }) : null,
    interval
      ? s("line", {
          class: "range",
          x1: x(interval[0]),
          x2: Math.max(x(interval[1]), x(interval[0]) + 1),
          y1: 8,
          y2: 8,
        })
      : null,
    s("circle", { class: "mean", cx: x(mean), cy: 8, r: 3.5 }),
  );
}

// Shares of win, draw, loss and unfinished as one bar.
export function shares(outcomes, tall = false) {
  const named = OUTCOMES.filter((name) => outcomes[name]?.mean > 0);
  if (!named.length) return h("span", { class: "dim" }, "–");
  const text = named.map((name) => `${name} ${percent(outcomes[name].mean)}`).join(", ");
  return h(
    "div",
    { class: `shares${tall ? " tall" : ""}`, role: "img", "aria-label": text, title: text },
    named.map((name) => h("i", { class: name, style: { "flex-grow": String(outcomes[name].mean) } })),
  );
}

// Bars of totals, each cut by how the games ended; choose(bar) is called for one that is clicked.
export function histogram(bars, exact, choose) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const label = (bar) => (exact ? short(bar.low) : `${short(bar.low)} to ${short(bar.high)}`);
  const column = (bar) => {
    const ends = OUTCOMES.filter((name) => bar.ends[name]);
    const parts = ends.length ? ends.map((name) => [name, bar.ends[name]]) : [["plain", bar.count]];
    const text = `reward ${label(bar)}: ${bar.count}${ends.length ? ` (${ends.map((name) => `${name} ${bar.ends[name]}`).join(", ")})` : ""}`;
    return h(
      "button",
      {
        class: "column",
        title: text,
        "aria-label": `${text}; show them`,
        onclick: () => choose(bar),
        disabled: bar.count === 0,
      },
      h("span", { class: "number" }, bar.count || ""),
      h(
        "span",
        { class: "stack", style: { height: `${(100 * bar.count) / most}%` } },
        parts.map(([name, number]) => h("i", { class: name, style: { "flex-grow": String(number) } })),
      ),
      h("span", { class: "tick" }, exact || bars.length < 9 ? label(bar) : short(bar.low)),
    );
  };
  return h("div", { class: `histogram${exact ? "" : " dense"}` }, bars.map(column));
}

// Curves over steps: series are [{name, values}], steps the axis they share. Points without a value are left out.
export function curves(title, steps, series) {
  const box = { width: 420, height: 180, left: 46, right: 8, top: 8, bottom: 22 };
  const values = series.flatMap((one) => one.values.filter((value) => value !== null));
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (low > 0 && low < 0.5 * high) low = 0;
  if (high === low) [low, high] = [low - 0.5, high + 0.5];
  const lines = ticks(low, high);
  [low, high] = [lines[0], lines[lines.length - 1]];
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const x = (step) => box.left + (box.width - box.left - box.right) * ((step - first) / (last - first || 1));
  const y = (value) => box.top + (box.height - box.top - box.bottom) * (1 - (value - low) / (high - low));
  const path = (one) => {
    const points = steps.map((step, place) => [step, one.values[place]]).filter(([, value]) => value !== null);
    return points
      .map(([step, value], place) => `${place ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`)
      .join("");
  };
  const marker = s("line", { class: "marker", y1: box.top, y2: box.height - box.bottom, visibility: "hidden" });
  const legend = h("figcaption", { class: "legend" });
  const say = (place) => {
    legend.replaceChildren(
      ...series.map((one, number) =>
        h(
          "span",
          { class: `series ${hue(one, number)}` },
          h("i", null),
          `${one.name} `,
          h("b", null, short(nearest(one.values, place))),
        ),
      ),
      h("span", { class: "dim" }, `step ${steps[place]}`),
    );
  };
  const move = (event) => {
    const bounds = picture.getBoundingClientRect();
    const at = ((event.clientX - bounds.left) / bounds.width) * box.width;
    let place = 0;
    steps.forEach((step, number) => {
      if (Math.abs(x(step) - at) < Math.abs(x(steps[place]) - at)) place = number;
    });
    marker.setAttribute("x1", x(steps[place]));
    marker.setAttribute("x2", x(steps[place]));
    marker.setAttribute("visibility", "visible");
    say(place);
  };
  const leave = () => {
    marker.setAttribute("visibility", "hidden");
    say(steps.length - 1);
  };
  const text = series
    .map(
      (one) => `${one.name} from ${short(nearest(one.values, 0))} to ${short(nearest(one.values, steps.length - 1))}`,
    )
    .join(", ");
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${box.width} ${box.height}`,
      role: "img",
      "aria-label": `${title}: ${text}`,
      onpointermove: move,
      onpointerleave: leave,
    },
    lines.map((value) => [
      s("line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) }),
      s("text", { class: "axis-text", x: box.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, short(value)),
    ]),
    [first, last].map((step, place) =>
      s("text", { class: "axis-text", x: x(step), y: box.height - 6, "text-anchor": place ? "end" : "start" }, step),
    ),
    series.map((one, number) => s("path", { class: `curve ${hue(one, number)}`, d: path(one) })),
    marker,
  );
  say(steps.length - 1);
  return h("figure", { class: "chart" }, h("h3", null, title), picture, legend);
}

// A curve that tells of an outcome has that outcome's colour.
function hue(one, number) {
  return OUTCOMES.includes(one.name) ? one.name : `s${number % 6}`;
}

// Round numbers from at most low to at least high, three to seven of them.
function ticks(low, high) {
  const raw = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let number = Math.floor(low / step + 1e-9); ; number += 1) {
    found.push(number * step);
    if (number * step >= high - 1e-9 * step) break;
  }
  return found;
}

// The last value at or before a place, else the first after it.
function nearest(values, place) {
  for (let number = place; number >= 0; number -= 1) if (values[number] !== null) return values[number];
  return values.find((value) => value !== null) ?? null;
}

// Numbers and words as people read them.

export const OUTCOMES = ["win", "draw", "loss", "unfinished"];

export function figure(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// As short as it can be said: 1, 0.5, 0.333.
export function short(value) {
  if (value === null || value === undefined) return "–";
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

export function percent(share, digits = 1) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`;
}

export function between(interval, show = figure) {
  if (!interval) return "";
  return interval[0] === interval[1] ? "all equal" : `${show(interval[0])} to ${show(interval[1])}`;
}

export function count(number, one, many = `${one}s`) {
  return `${Number(number).toLocaleString("en-US")} ${number === 1 ? one : many}`;
}

export function words(name) {
  return String(name).replaceAll("_", " ");
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = seconds / 60;
  return minutes < 90 ? `${minutes.toFixed(1)} min` : `${(minutes / 60).toFixed(1)} h`;
}

export function moment(text) {
  const when = new Date(typeof text === "number" ? 1000 * text : text);
  if (!text || Number.isNaN(when.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  return `${day} ${two(when.getHours())}:${two(when.getMinutes())}`;
}

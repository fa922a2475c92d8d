// Elements. Whatever a trace says becomes a text node: nothing in this page is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
// What could command a terminal or turn the direction of writing is shown as a mark, as on the command line.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text) {
  return String(text).replace(CONTROL, "\uFFFD");
}

// An HTML element: h("p", {class: "dim", onclick: …}, "text", other, [more], null).
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// An SVG element.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Replace all that is in an element.
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    else element.setAttribute(name, value === true ? "" : plain(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
}

// Say something to who cannot see the page change.
export function announce(text) {
  let live = document.getElementById("live");
  if (!live) {
    live = h("div", { id: "live", role: "status", class: "unseen" });
    document.body.append(live);
  }
  live.textContent = plain(text);
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    button.textContent = "not allowed";
  }
  setTimeout(() => {
    button.textContent = before;
  }, 1200);
}

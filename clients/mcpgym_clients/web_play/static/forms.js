// A form for each tool, by its schema: what a policy calls with JSON, a person fills in. The server reads the texts.

import { h } from "./dom.js";

const LONG = 1000;

function field(name, about, required, id) {
  const hint = [about.description || "", required ? "" : "May be left out."].filter(Boolean).join(" ");
  const given = about.default === undefined ? "" : String(about.default);
  const options = { id, name, "aria-describedby": `${id}-hint` };
  let control;
  if (about.enum || about.type === "boolean") {
    const choices = about.enum ? about.enum.map(String) : ["true", "false"];
    const empty = required ? [] : [h("option", { value: "" }, "")];
    const option = (choice) => h("option", { value: choice, selected: choice === given }, choice);
    control = h("select", options, empty, ...choices.map(option));
  } else if (about.type === "string" && (about.maxLength === undefined || about.maxLength > LONG)) {
    control = h("textarea", { ...options, rows: 3, spellcheck: "false", class: (about.maxLength ?? 0) > 5000 ? "code" : "" });
    control.defaultValue = given;
  } else {
    const numeric = about.type === "integer" || about.type === "number";
    control = h("input", { ...options, type: "text", inputmode: numeric ? "numeric" : null, autocomplete: "off" });
    control.defaultValue = given;
  }
  return h("label", { for: id }, name, control, h("span", { class: "dim", id: `${id}-hint` }, hint));
}

// call(name, fields) is done when a form is sent, and says whether it was; what was typed stays if not, or if it was refused.
export function toolForm(tool, call) {
  const schema = tool.inputSchema || {};
  const needed = schema.required || [];
  const fields = Object.entries(schema.properties || {}).map(([name, about]) =>
    field(name, about, needed.includes(name), `${tool.name}-${name}`),
  );
  const form = h(
    "form",
    { class: "tool", "aria-label": `Tool ${tool.name}` },
    h("p", null, h("span", { class: "call-name" }, tool.name), " ", h("span", { class: "dim" }, tool.description)),
    ...fields,
    h("p", null, h("button", { class: "act", type: "submit" }, `Call ${tool.name}`)),
  );
  sentByKey(form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const typed = Object.fromEntries([...form.querySelectorAll("[name]")].map((control) => [control.name, control.value]));
    if (await call(tool.name, typed)) form.reset();
  });
  return form;
}

// In a text of several lines Enter is a line's end: Ctrl-Enter sends.
function sentByKey(form) {
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

export function wordsForm(say) {
  const words = h("textarea", { id: "words", name: "words", rows: 3 });
  const form = h(
    "form",
    { class: "tool", "aria-label": "Answer in words" },
    h("label", { for: "words" }, "Your words", words),
    h("p", null, h("button", { class: "act", type: "submit" }, "Say it")),
  );
  sentByKey(form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await say(words.value)) form.reset();
  });
  return form;
}

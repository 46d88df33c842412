// The form of a request, made from the fields of the question; what is wrong is said at its field.

import { element, replace } from "../shared/dom.js";
import { small, withCode } from "../shared/parts.js";
import { nameList } from "../shared/places.js";
import { editor } from "./editor.js";
import { clearChips } from "./chips.js";
import { FIELDS, fieldOf, isLong, QUESTION, worded } from "./fields.js";
import { tidied } from "./request.js";

// Always shown, beside what the question is about: its first group, but for tables and documents that
// it can do without. The others are behind "More options".
const BASIC = ["objective", "time_value_usd_per_h"];
const RARE = ["objects"];

const id = (field) => `option-${field.name}`;
// "place-reduce" as a heading.
export const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ");

function placeholder(field) {
  if (field.control === "number") return field.optional ? "none" : field.standard;
  return field.control === "choice" ? null : field.standard || field.example;
}

function control(field) {
  const shared = { id: id(field), name: field.name, "aria-describedby": `${id(field)}-help ${id(field)}-problem` };
  if (field.control === "choice") return element("select", shared, field.choices.map(([value, text]) => element("option", { value }, `${value}: ${text}`)));
  if (field.control === "flag") return element("input", { ...shared, type: "checkbox" });
  if (isLong(field)) return editor(field, shared);
  const list = field.control === "region" ? (field.choices.length ? "relay-names" : "names") : null;
  const input = element("input", { ...shared, type: "text", list, autocomplete: "off", spellcheck: "false", class: field.control, placeholder: placeholder(field) });
  return field.name === "time_value_usd_per_h" ? element("div", { class: "slid" }, slider(input, field), input) : input;
}

// As even steps to a person: each is about half as much again.
const WORTHS = [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200];

// Beside the field of what an hour is worth, which it fills in.
function slider(input, field) {
  const made = element("input", { type: "range", min: 0, max: WORTHS.length - 1, "aria-label": "Worth of an hour" });
  const tell = (worth) => made.setAttribute("aria-valuetext", worth === Infinity ? "any sum" : `$${worth}`);
  function follow() {
    const worth = { "": Number(field.standard), inf: Infinity }[input.value.trim()] ?? Number(input.value);
    if (Number.isNaN(worth)) return;
    made.value = WORTHS.findLastIndex((each) => each <= Math.max(0, worth));
    tell(worth);
  }
  made.addEventListener("input", () => {
    input.value = WORTHS[made.value];
    tell(WORTHS[made.value]);
  });
  for (const event of ["input", "filled"]) input.addEventListener(event, follow);
  return made;
}

function labelled(field) {
  // A figure is in the field's unit, or says its own, as people write it.
  const written = ["volume", "duration", "rate"].includes(field.kind) ? ` or ${field.example}` : "";
  const unit = field.unit && small(field.unit, written);
  return element("div", { class: `field field-${field.control}` },
    element("label", { for: id(field) }, field.label, unit), control(field),
    field.control === "region" && element("div", { class: "chips", id: `${id(field)}-chips` }),
    element("small", { class: "muted", id: `${id(field)}-help` }, withCode(field.help)),
    element("p", { class: "field-problem bad", id: `${id(field)}-problem` }));
}

// places: the answer of /v1/regions; onAsk(request) when the form is sent.
export function planForm(places, onAsk) {
  const every = [...FIELDS.values()];
  const isBasic = (field) => field === every[0] || BASIC.includes(field.name)
    || (field.group === every[0].group && (field.required || !isLong(field)) && !RARE.includes(field.name));
  const more = every.filter((field) => !isBasic(field));
  const summary = element("summary");
  const groups = [...new Set(more.map((field) => field.group))];
  const details = element("details", { class: "more-options" }, summary, element("div", { class: "option-groups" },
    groups.map((group) => element("fieldset", {}, element("legend", {}, titled(group)), more.filter((field) => field.group === group).map(labelled)))));
  const swap = element("button", { type: "button", class: "swap", "aria-label": "Swap source and destination", title: "Swap", on: { click: swapEnds } }, "⇄");
  const basic = every.filter(isBasic).map(labelled);
  if (FIELDS.get("dst")?.control === "region") basic.splice(1, 0, swap);
  const form = element("form", { class: "plan-form panel", "aria-label": "Request", novalidate: true },
    element("div", { class: "basic-options" }, basic, element("button", { type: "submit", class: "main" }, titled(QUESTION.command.replace(/^(plan|transfers) /, "")))),
    details, nameList("names", places), nameList("relay-names", places, ["any", "one", "none"]));

  function read() {
    return tidied(Object.fromEntries(every.map((field) => {
      const made = form.elements.namedItem(field.name);
      return [field.name, field.control === "flag" ? String(made.checked) : made.value];
    })));
  }

  function fill(request) {
    for (const field of every) {
      const made = form.elements.namedItem(field.name);
      const text = request[field.name];
      if (field.control === "flag") made.checked = (text ?? field.standard) === "true";
      else made.value = text ?? (field.control === "choice" ? field.standard : "");
      made.dispatchEvent(new Event("filled"));
    }
    count();
    clear();
  }

  function count() {
    const request = read();
    const set = more.filter((field) => request[field.name] !== undefined).length;
    replace(summary, "More options", set ? element("span", { class: "tag" }, `${set} set`) : null);
  }

  function clear() {
    clearChips();
    for (const field of every) {
      form.elements.namedItem(field.name).removeAttribute("aria-invalid");
      document.getElementById(`${id(field)}-problem`)?.replaceChildren();
    }
  }

  // Says a problem at its field; false where it names none.
  function problem(error) {
    const field = fieldOf(error.field);
    if (!field) return false;
    const at = document.getElementById(id(field));
    at.dispatchEvent(new Event("wrong"));
    replace(document.getElementById(`${id(field)}-problem`), worded(error));
    at.setAttribute("aria-invalid", "true");
    if (details.contains(at)) details.open = true;
    at.focus();
    return true;
  }

  function swapEnds() {
    const [src, dst] = [form.elements.namedItem("src"), form.elements.namedItem("dst")];
    [src.value, dst.value] = [dst.value, src.value];
  }

  form.addEventListener("input", count);
  form.addEventListener("keydown", (event) => {
    // In an editor of many cells, Enter would send what is half filled in.
    if (event.key === "Enter" && event.target.closest(".editor")) event.preventDefault();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onAsk(read());
  });
  return { form, fill, clear, problem };
}

// The form of a request: a field for every option, and what the API says is wrong at its field.

import { element, replace } from "../shared/dom.js";
import { OPTIONS, optionOf } from "./options.js";
import { tidied } from "./request.js";
import { nameList } from "../shared/places.js";

const id = (option) => `option-${option.name}`;

function control(option) {
  const described = [option.help && `${id(option)}-help`, `${id(option)}-problem`].filter(Boolean).join(" ");
  const shared = { id: id(option), name: option.name, "aria-describedby": described };
  if (option.kind === "choice") {
    return element(
      "select",
      shared,
      option.choices.map(([value, text]) => element("option", { value }, `${value}: ${text}`)),
    );
  }
  if (option.kind === "flag") return element("input", { ...shared, type: "checkbox" });
  const list = option.kind === "region" ? (option.choices ? "relay-names" : "names") : null;
  // What a number is, the API says, with a remedy.
  return element("input", {
    ...shared,
    type: "text",
    list,
    autocomplete: "off",
    spellcheck: "false",
    class: option.kind,
    inputmode: option.kind === "number" ? "decimal" : null,
    placeholder: option.placeholder ?? (option.default === undefined ? null : String(option.default)),
  });
}

function field(option) {
  const unit = option.unit && element("small", { class: "muted" }, option.unit);
  return element(
    "div",
    { class: `field field-${option.kind}` },
    element("label", { for: id(option) }, option.label, unit),
    control(option),
    option.help && element("small", { class: "muted", id: `${id(option)}-help` }, option.help),
    element("p", { class: "field-problem bad", id: `${id(option)}-problem` }),
  );
}

const input = (option) => document.getElementById(id(option));

// places: the answer of /v1/regions; onAsk(request) when the form is sent.
export function planForm(places, onAsk) {
  const more = OPTIONS.filter((option) => !option.basic);
  const summary = element("summary");
  const groups = [...new Set(more.map((option) => option.group))];
  const details = element(
    "details",
    { class: "more-options" },
    summary,
    element(
      "div",
      { class: "option-groups" },
      groups.map((group) =>
        element(
          "fieldset",
          {},
          element("legend", {}, group),
          more.filter((option) => option.group === group).map(field),
        ),
      ),
    ),
  );
  const swap = element(
    "button",
    {
      type: "button",
      class: "swap",
      "aria-label": "Swap source and destination",
      title: "Swap",
      on: { click: swapEnds },
    },
    "⇄",
  );
  const basic = OPTIONS.filter((option) => option.basic).map(field);
  basic.splice(1, 0, swap);
  const form = element(
    "form",
    { class: "plan-form panel", "aria-label": "Request", novalidate: true },
    element("div", { class: "basic-options" }, basic, element("button", { type: "submit", class: "main" }, "Plan")),
    details,
    nameList("names", places),
    nameList("relay-names", places, ["any", "one", "none"]),
  );

  function read() {
    return tidied(
      Object.fromEntries(
        OPTIONS.map((option) => {
          const made = form.elements.namedItem(option.name);
          return [option.name, option.kind === "flag" ? String(made.checked) : made.value];
        }),
      ),
    );
  }

  function fill(request) {
    for (const option of OPTIONS) {
      const made = form.elements.namedItem(option.name);
      const text = request[option.name];
      if (option.kind === "flag") made.checked = (text ?? String(option.onPage ?? option.default)) === "true";
      else made.value = text ?? (option.kind === "choice" ? option.default : "");
    }
    count();
    clear();
  }

  function count() {
    const request = read();
    const set = more.filter((option) => request[option.name] !== undefined).length;
    replace(summary, "More options", set ? element("span", { class: "tag" }, `${set} set`) : null);
  }

  function clear() {
    for (const option of OPTIONS) {
      form.elements.namedItem(option.name).removeAttribute("aria-invalid");
      document.getElementById(`${id(option)}-problem`)?.replaceChildren();
    }
  }

  // Says a problem at its field; false where it names none.
  function problem(error) {
    const option = error.field ? optionOf(error.field) : null;
    if (!option) return false;
    const at = input(option);
    // Only "src: " and the like goes: the field says that by itself.
    replace(document.getElementById(`${id(option)}-problem`), error.message.replace(/^[\w.]+: /, ""));
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
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onAsk(read());
  });
  return { form, fill, clear, problem };
}

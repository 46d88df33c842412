// A field of many lines: pasted or uploaded as text, and filled in cell by cell as a list. The text is
// what counts: the list is made from it and writes it.

import { element, replace } from "../shared/dom.js";
import { small } from "../shared/parts.js";
import { FIELDS } from "./fields.js";
import { columnsOf, rowsOf, textOf } from "./rows.js";

const MOST_ROWS = 200;

// Names are regions, but those of a question that has tasks.
const namesList = () => ([...FIELDS.values()].some((field) => field.kind === "tasks") ? null : "names");

// text: the text area; onChange(text): it was filled in, cell by cell.
function listView(field, rows, onChange) {
  const columns = columnsOf(field);
  const kept = rows.length ? rows.map((row) => ({ ...row })) : [{}];
  const table = element("table", { class: "editor" });
  const tell = () => onChange(textOf(columns, kept.filter((row) => Object.values(row).some((value) => String(value) !== ""))));
  function put() {
    const head = columns.map(({ name, label, unit, help, required }) => element("th", { scope: "col", title: help }, label,
      unit && small(` ${unit}`), required && element("span", { class: "muted", "aria-hidden": "true" }, " *")));
    replace(table, element("thead", {}, element("tr", {}, head, element("td"))),
      element("tbody", {}, kept.map((row, at) => element("tr", {},
        columns.map(({ name, label, kind }) => element("td", {}, element("input", {
          type: "text", value: row[name] ?? "", "aria-label": `${label}, row ${at + 1}`, autocomplete: "off", spellcheck: "false",
          list: kind === "region" || (field.kind === "pairs" && kind === "text") ? namesList() : null,
          class: kind === "text" || kind === "region" ? "word" : "figure",
          on: { input: (event) => { row[name] = event.target.value; tell(); } },
        }))),
        element("td", {}, element("button", { type: "button", "aria-label": `Remove row ${at + 1}`, on: { click: () => {
          kept.splice(at, 1);
          if (!kept.length) kept.push({});
          tell();
          put();
        } } }, "×"))))));
  }
  put();
  return { table, add: () => { kept.push({}); put(); } };
}

// shared: attributes of the text area, which is the field of the form. It hears "filled" when a text
// was put into it and "wrong" when there is a problem with it, and says "input" when another view has
// changed it.
export function editor(field, shared) {
  const text = element("textarea", { ...shared, rows: field.control === "document" ? "3" : "6", spellcheck: "false", class: "long",
    placeholder: field.control === "document" ? "The JSON of an answer" : columnsOf(field).map(({ name }) => name).join(",") });
  const holder = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": field.label });
  const note = element("small", { class: "muted" });
  const file = element("input", { type: "file", accept: ".csv,.tsv,.json,.txt", class: "hidden-text", "aria-label": `${field.label}: a file`, tabindex: "-1" });
  const button = (title, click) => element("button", { type: "button", on: { click } }, title);
  const [asList, asText] = [button("List", () => view((wantsList = true))), button("Text", () => view((wantsList = false)))];
  const more = button("Add a row", () => add());
  let wantsList = field.control !== "document";
  let add = () => {};

  function write(value) {
    text.value = value;
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
  // What is too much to fill in cell by cell, and what can't be read, is shown as text.
  function rows() {
    if (!text.value.trim()) return [];
    const found = rowsOf(field, text.value);
    if (!Array.isArray(found)) throw new Error("These rows can only be shown as text.");
    if (found.length > MOST_ROWS) throw new Error(`${found.length} rows: shown as text.`);
    return found;
  }
  function view(isList) {
    note.textContent = "";
    try {
      if (isList) {
        const made = listView(field, rows(), write);
        add = made.add;
        replace(holder, made.table);
      }
    } catch (error) {
      note.textContent = error.message;
      isList = false;
    }
    text.hidden = isList;
    holder.hidden = more.hidden = !isList;
    asList.setAttribute("aria-pressed", String(isList));
    asText.setAttribute("aria-pressed", String(!isList));
  }
  file.addEventListener("change", async () => {
    if (!file.files[0]) return;
    write(await file.files[0].text());
    file.value = "";
    view(wantsList);
  });
  text.addEventListener("filled", () => view(wantsList));
  text.addEventListener("wrong", () => view(false));
  view(wantsList);
  return element("div", { class: "editor-field" }, holder, text, element("div", { class: "row" },
    wantsList && element("span", { role: "group", "aria-label": `${field.label} as` }, asList, asText),
    more, button("Upload a file", () => file.click()), file, note));
}

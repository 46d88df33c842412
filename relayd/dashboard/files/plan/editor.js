// A field of many lines: pasted or uploaded as text, and filled in cell by cell as a list or, for
// pairs, as a matrix. The text is what counts: the other views are made from it and write it.

import { element, replace } from "../shared/dom.js";
import { FIELDS } from "./fields.js";
import { columnsOf, rowsOf, textOf } from "./rows.js";

const MOST_NAMES = 40;
const MOST_ROWS = 200;
const BLANK_NAMES = 3;
const MORE = { matrix: "Add a name", list: "Add a row" };

const cell = (value, label, heard, more = {}) => element("input", {
  type: "text", value, "aria-label": label, autocomplete: "off", spellcheck: "false", on: heard, ...more,
});

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
      unit && element("small", { class: "muted" }, ` ${unit}`), required && element("span", { class: "muted", "aria-hidden": "true" }, " *")));
    replace(table, element("thead", {}, element("tr", {}, head, element("td"))),
      element("tbody", {}, kept.map((row, at) => element("tr", {},
        columns.map(({ name, label, kind }) => element("td", {}, cell(row[name] ?? "", `${label}, row ${at + 1}`,
          { input: (event) => { row[name] = event.target.value; tell(); } },
          { list: kind === "region" || (field.kind === "pairs" && kind === "text") ? namesList() : null, class: kind === "text" || kind === "region" ? "word" : "figure" }))),
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

function matrixView(field, rows, onChange) {
  const names = [...new Set(rows.flatMap((row) => [row.src, row.dst]))];
  while (names.length < BLANK_NAMES) names.push("");
  const volumes = new Map(rows.map((row) => [`${names.indexOf(row.src)} ${names.indexOf(row.dst)}`, row.volume_gb]));
  const table = element("table", { class: "editor matrix" });
  const tell = () => onChange(textOf(columnsOf(field), names.flatMap((src, from) => names.map((dst, to) => ({ src, dst, volume_gb: volumes.get(`${from} ${to}`) ?? "" })))
    .filter((row) => row.src && row.dst && row.volume_gb !== "")));
  function put() {
    const heads = names.map((name) => element("th", { scope: "col" }, name || "–"));
    replace(table, element("caption", {}, "GB from the name of the row to that of the column"),
      element("thead", {}, element("tr", {}, element("td"), heads)),
      element("tbody", {}, names.map((name, from) => element("tr", {},
        element("th", { scope: "row" }, cell(name, `Name ${from + 1}`, { input: (event) => {
          names[from] = event.target.value.trim();
          replace(heads[from], names[from] || "–");
          tell();
        } }, { list: namesList(), class: "word" })),
        names.map((other, to) => element("td", {}, from === to ? "" : cell(volumes.get(`${from} ${to}`) ?? "", `GB from name ${from + 1} to name ${to + 1}`,
          { input: (event) => { volumes.set(`${from} ${to}`, event.target.value.trim()); tell(); } }, { class: "figure" })))))));
  }
  put();
  return { table, add: () => { names.push(""); put(); } };
}

const VIEWS = { matrix: matrixView, list: listView };
const TITLES = { matrix: "Matrix", list: "List", text: "Text" };

// shared: attributes of the text area, which is the field of the form. It hears "filled" when a text
// was put into it and "wrong" when there is a problem with it, and says "input" when another view has
// changed it.
export function editor(field, shared) {
  const text = element("textarea", { ...shared, rows: field.control === "document" ? "3" : "6", spellcheck: "false", class: "long", 
    placeholder: field.control === "document" ? "The JSON of an answer" : columnsOf(field).map(({ name }) => name).join(",") });
  const kinds = field.control === "document" ? ["text"] : field.kind === "pairs" ? ["matrix", "list", "text"] : ["list", "text"];
  const holder = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": field.label });
  const note = element("small", { class: "muted" });
  const file = element("input", { type: "file", accept: ".csv,.tsv,.json,.txt", class: "hidden-text", "aria-label": `${field.label}: a file`, tabindex: "-1" });
  const upload = element("button", { type: "button", on: { click: () => file.click() } }, "Upload a file");
  const tabs = kinds.map((kind) => element("button", { type: "button", "aria-pressed": "false", on: { click: () => view((wanted = kind)) } }, TITLES[kind]));
  const more = element("button", { type: "button" });
  let chosen = "text";
  let wanted = kinds[0];
  let add = () => {};

  function write(value) {
    text.value = value;
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
  // What is too much to fill in cell by cell, and what can't be read, is shown as text.
  function rows(kind) {
    if (!text.value.trim()) return [];
    const found = rowsOf(field, text.value);
    if (!Array.isArray(found)) throw new Error("These rows can only be shown as text.");
    const size = kind === "matrix" ? new Set(found.flatMap((row) => [row.src, row.dst])).size : found.length;
    if (size > (kind === "matrix" ? MOST_NAMES : MOST_ROWS)) throw new Error(`${size} ${kind === "matrix" ? "names" : "rows"}: shown as text.`);
    return found;
  }
  function view(kind) {
    chosen = kind;
    note.textContent = "";
    if (chosen !== "text") {
      try {
        const made = VIEWS[chosen](field, rows(chosen), write);
        add = made.add;
        replace(holder, made.table);
      } catch (error) {
        note.textContent = error.message;
        chosen = "text";
      }
    }
    text.hidden = chosen !== "text";
    holder.hidden = more.hidden = !text.hidden;
    more.textContent = MORE[chosen] ?? "";
    tabs.forEach((tab, at) => tab.setAttribute("aria-pressed", String(kinds[at] === chosen)));
  }
  more.addEventListener("click", () => add());
  file.addEventListener("change", async () => {
    if (!file.files[0]) return;
    write(await file.files[0].text());
    file.value = "";
    view(wanted);
  });
  text.addEventListener("filled", () => view(wanted));
  text.addEventListener("wrong", () => view("text"));
  view(wanted);
  return element("div", { class: "editor-field" }, holder, text,
    element("div", { class: "row" }, tabs.length > 1 && element("span", { role: "group", "aria-label": `${field.label} as` }, tabs), more, upload, file, note));
}

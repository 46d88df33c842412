// Builds elements. Text is always text, never markup: what a region or a host is called is data.

// What would not be seen, or would turn the text around it (Unicode's controls and directions), is
// written as JSON escapes, as on the command line.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const shown = (child) => (typeof child === "string"
  ? child.replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`) : child);
const present = (children) => children.flat(Infinity)
  .filter((child) => child !== null && child !== undefined && child !== false).map(shown);

// element("td", { class: "number" }, "4.9 Gbit/s"); on: { click: f } adds listeners. drawn: the same in a
// drawing: drawn("path", { d: "M0 0L9 9" }).
const SVG = "http://www.w3.org/2000/svg";
export const element = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);
export const drawn = (tag, attributes, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

function filled(made, attributes = {}, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "dataset") Object.assign(made.dataset, value);
    else if (name !== "on") made.setAttribute(name, value === true ? "" : String(value));
    else for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
  }
  made.append(...present(children));
  return made;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...present(children));
  return parent;
}

// A table of facts: pairs of a name and a value (text or element), or false for none.
export const facts = (pairs) => element("dl", { class: "facts" },
  pairs.filter(Boolean).map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

// A long name may break behind its provider.
export const breakable = (name) => name.split(/(?<=^[^:]*:)/).map((part, at) => (at ? [element("wbr"), part] : part));

export const small = (...said) => element("small", { class: "muted" }, said);
export const muted = (...said) => element("p", { class: "muted" }, said);
export const link = (href, ...said) => element("a", { href }, said);
export const button = (title, click, attributes = {}) =>
  element("button", { type: "button", ...attributes, on: { click } }, title);

// What may be wider than the page, in a frame that scrolls by itself, by the keyboard too.
export const scrolling = (label, ...content) =>
  element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...content);

// ---- tables ----

// Columns of a table: the value of a row is a function, or the path of a key in it; what is shown is the
// value, or made of it and its row.
const valueOf = (value) => (typeof value === "function" ? value
  : (row) => value.split(".").reduce((part, key) => part?.[key], row));
export function words(title, value, shown = (text) => text, kind = null) {
  const of = valueOf(value);
  return { title, value: of, shown: (row) => shown(of(row), row), kind };
}
export const number = (title, value, shown, unit) => ({ ...words(title, value, shown, "number"), unit });

export const isPhone = matchMedia("(max-width: 40rem)").matches;
const MOST_ROWS = isPhone ? 12 : 100; // until the rest is asked for
const whole = new Set(); // captions of tables of which all was asked for
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

function compared(x, y, falling) {
  if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
  return (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) * (falling ? -1 : 1);
}

// Of rows beyond `first`, a button below asks. Headings sort if there is an `order`: the column by which
// rows stand at first; it is said to screen readers by aria-sort. Else the first cell of a row names it. Roles
// are said because rows that phones lay out as cards would lose them.
export function table(name, caption, columns, rows, { first = Infinity, key, order = null, descending = false } = {}) {
  const sorts = order !== null;
  let [by, falling] = [order, descending];
  const body = element("tbody", { role: "rowgroup" });
  const heads = columns.map(({ title, unit, kind }, at) => (title ? element("th", { scope: "col", role: "columnheader", class: kind },
    sorts ? button(title, () => {
      falling = at === by ? !falling : kind === "number";
      by = at;
      put();
    }, { class: "sort" }) : title, unit && small(` ${unit}`)) : element("td", { role: "cell" })));
  const cell = (row, { title, unit, kind, shown }, at) => (at || sorts
    ? element("td", { role: "cell", class: kind, dataset: { label: unit ? `${title}, ${unit}` : title } }, element("div", {}, shown(row) ?? ""))
    : element("th", { scope: "row", role: "rowheader", class: kind }, shown(row)));
  const line = (row) => element("tr", { role: "row", dataset: key ? { key: key(row) } : {} },
    columns.map((column, at) => cell(row, column, at)));
  const made = new Map(); // a row that was opened stays so
  function put() {
    const { value } = columns[by ?? 0];
    const all = sorts ? [...rows].sort((a, b) => compared(value(a), value(b), falling)) : rows;
    if (sorts) heads.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : falling ? "descending" : "ascending"));
    const shown = whole.has(caption) ? all : all.slice(0, first);
    for (const row of shown) if (!made.has(row)) made.set(row, line(row));
    replace(body, shown.map((row) => made.get(row)));
    if (shown.length === rows.length) rest.remove();
  }
  const rest = button(`Show all ${rows.length}`, () => {
    whole.add(caption);
    part.focus({ preventScroll: true });
    put();
  });
  const part = scrolling(caption, element("table", { role: "table", class: name }, element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)), body), rest);
  put();
  return part;
}
// Its rows become cards on a phone.
export const cardTable = (name, ...more) => table(`cards ${name}`, ...more);
export const sortable = (caption, columns, rows, options = {}) =>
  cardTable("sorted", caption, columns, rows, { order: 0, first: MOST_ROWS, ...options });

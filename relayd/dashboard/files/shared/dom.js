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

// A table of facts: pairs of a name and a value (text or element).
export function facts(pairs) {
  return element("dl", { class: "facts" }, pairs.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// A long name may break behind its provider.
export function breakable(name) {
  const at = name.indexOf(":") + 1;
  return at ? [name.slice(0, at), element("wbr"), name.slice(at)] : [name];
}

// What may be wider than the page, in a frame that scrolls by itself, by the keyboard too.
export const scrolling = (label, ...content) =>
  element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...content);

// ---- tables ----

// Roles are said because rows that phones lay out as cards would lose them. put(body): fills in the
// rows that are to be seen, and says whether all of them are; of others, a button below asks.
const whole = new Set(); // captions of tables of which all was asked for

function framed(name, caption, heads, count, put) {
  const body = element("tbody", { role: "rowgroup" });
  const rest = element("button", { type: "button", on: { click: () => {
    whole.add(caption);
    put(body);
    part.focus({ preventScroll: true });
    rest.remove();
  } } }, `Show all ${count}`);
  const part = scrolling(caption, element("table", { role: "table", class: name }, element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)), body), rest);
  if (put(body)) rest.remove();
  return part;
}

const headCell = (content, kind, unit) => (content ? element("th", {
  scope: "col", role: "columnheader", class: kind || null,
}, content, unit && element("small", { class: "muted" }, ` ${unit}`)) : element("td", { role: "cell" }));

// heads: [title, "number" where figures stand below it, unit]; a row: cells, or { cells, kinds: classes by
// column, data }. hasHead: its first cell names it.
function line(heads, row, hasHead) {
  const { cells, kinds = {}, data = {} } = Array.isArray(row) ? { cells: row } : row;
  return element("tr", { role: "row", dataset: data }, cells.map((content, at) => {
    const [title, own, unit] = heads[at];
    const kind = [own, kinds[at]].filter(Boolean).join(" ") || null;
    if (hasHead && !at) return element("th", { scope: "row", role: "rowheader", class: kind }, content);
    const label = unit ? `${title}, ${unit}` : title;
    return element("td", { role: "cell", class: kind, dataset: { label } }, element("div", {}, content ?? ""));
  }));
}

// Rows in the order given, of which those beyond `first` come when they are asked for.
export const table = (name, caption, heads, rows, first = Infinity) =>
  framed(name, caption, heads.map((head) => headCell(...head)), rows.length, (body) => {
    const shown = whole.has(caption) ? rows : rows.slice(0, first);
    replace(body, shown.map((row) => line(heads, row, true)));
    return shown.length === rows.length;
  });
// Its rows become cards on a phone.
export const cardTable = (name, ...more) => table(`cards ${name}`, ...more);

// Columns of a table that sorts: the value of a row is a function, or the path of a key in it; what is
// shown is the value, or made of it and its row.
const valueOf = (value) => (typeof value === "function" ? value
  : (row) => value.split(".").reduce((part, key) => part?.[key], row));
export function words(title, value, shown = (text) => text) {
  const of = valueOf(value);
  return { title, value: of, shown: (row) => shown(of(row), row) };
}
export const number = (title, value, shown, unit) => ({ ...words(title, value, shown), unit, kind: "number" });

export const isPhone = matchMedia("(max-width: 40rem)").matches;
const MOST_ROWS = isPhone ? 12 : 100; // until the rest is asked for
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

function compared(x, y, falling) {
  if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
  return (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) * (falling ? -1 : 1);
}

// Headings sort, at first by the column `order`; the order is said to screen readers by aria-sort.
export function sortable(caption, columns, rows, { order = 0, descending = false, first = MOST_ROWS, key } = {}) {
  let [by, falling, body] = [order, descending, null];
  const heads = columns.map(({ title, unit, kind }) => [title, kind, unit]);
  const made = new Map(); // a row that was opened stays so
  const titles = columns.map(({ title, unit, kind }, at) => headCell(element("button", { class: "sort", type: "button", on: {
    click: () => {
      falling = at === by ? !falling : kind === "number";
      by = at;
      put(body);
    },
  } }, title), kind, unit));
  const lineOf = (row) => line(heads, { cells: columns.map(({ shown }) => shown(row)), data: key ? { key: key(row) } : {} });
  function put(filled) {
    body = filled;
    const { value } = columns[by];
    const sorted = [...rows].sort((a, b) => compared(value(a), value(b), falling));
    titles.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : falling ? "descending" : "ascending"));
    const shown = whole.has(caption) ? sorted : sorted.slice(0, first);
    for (const row of shown) if (!made.has(row)) made.set(row, lineOf(row));
    replace(body, shown.map((row) => made.get(row)));
    return shown.length === rows.length;
  }
  return framed("sorted cards", caption, titles, rows.length, put);
}

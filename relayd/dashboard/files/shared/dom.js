// Builds elements. Text is always text, never markup: what a region or a host is called is data.

// What would not be seen, or would turn the text around it (Unicode's controls and directions), is
// written as JSON escapes, as on the command line.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const shown = (child) => (typeof child === "string"
  ? child.replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`) : child);
const present = (children) => children.flat(Infinity)
  .filter((child) => child !== null && child !== undefined && child !== false).map(shown);

// element("td", { class: "number" }, "4.9 Gbit/s"); on: { click: f } adds listeners.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    } else if (name === "dataset") {
      Object.assign(made.dataset, value);
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...present(children));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";
// The same in a drawing: drawn("path", { d: "M0 0L9 9" }).
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(name, String(value));
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

// Tables. Roles are said because rows that phones lay out as cards would lose them.
const headCell = (content, kind, unit) => element("th", { scope: "col", role: "columnheader", class: kind || null },
  content, unit && element("small", { class: "muted" }, ` ${unit}`));
const dataCell = (content, kind, title, unit) => element("td", {
  role: "cell", class: kind || null, dataset: { label: unit ? `${title}, ${unit}` : title },
}, element("div", {}, content));
const framed = (name, caption, heads, body, more) => scrolling(caption,
  element("table", { role: "table", class: name }, element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)), body), more);

// heads: [title, "number" where figures stand below it, unit]; rows: cells, of which the first names the
// row, or { cells, kinds: classes by column, data }. Of more than `first` rows, the others come when they are
// asked for.
const whole = new Set(); // names of tables
export function table(name, caption, heads, rows, first = Infinity) {
  const line = (row) => {
    const { cells, kinds = {}, data = {} } = Array.isArray(row) ? { cells: row } : row;
    return element("tr", { role: "row", dataset: data }, cells.map((content, at) => {
      const [title, own, unit] = heads[at];
      const kind = [own, kinds[at]].filter(Boolean).join(" ") || null;
      return at ? dataCell(content, kind, title, unit)
        : element("th", { scope: "row", role: "rowheader", class: kind }, content);
    }));
  };
  const isPart = rows.length > first && !whole.has(name);
  const body = element("tbody", { role: "rowgroup" }, (isPart ? rows.slice(0, first) : rows).map(line));
  const rest = isPart && element("button", { type: "button", on: { click: () => {
    whole.add(name);
    body.append(...rows.slice(first).map(line));
    part.focus({ preventScroll: true });
    rest.remove();
  } } }, `Show all ${rows.length}`);
  const part = framed(name, caption, heads.map(([title, ...more]) => (title ? headCell(title, ...more) : element("td", { role: "cell" }))), body, rest);
  return part;
}

// Columns of a table that sorts: the value of a row is a function, or the path of a key in it; what is
// shown is the value, or made of it and its row.
const valueOf = (value) => (typeof value === "function" ? value
  : (row) => value.split(".").reduce((part, key) => part?.[key], row));
export function words(title, value, shown = (text) => text) {
  const of = valueOf(value);
  return { title, value: of, shown: (row) => shown(of(row), row) };
}
export const number = (title, value, shown, unit) => ({ ...words(title, value, shown), unit, number: true });

const MOST_ROWS = 100; // until the rest is asked for
const MOST_CARDS = 12; // on a phone; what is longer scrolls, beside its first column

// columns: [{ title, unit, number: true, value: row => sortable, shown: row => text or element }]
// Headings sort; the order is said to screen readers by aria-sort.
export function sortable(caption, columns, rows, { order = 0, descending = false, key } = {}) {
  const body = element("tbody", { role: "rowgroup" });
  const heads = columns.map(({ title, unit, number: isNumber }, at) => headCell(
    element("button", { class: "sort", type: "button", on: { click: () => sort(at) } }, title), isNumber && "number", unit));
  let by = order;
  let falling = descending;
  const made = new Map();
  const line = (row) => element("tr", { role: "row", dataset: key ? { key: key(row) } : {} },
    columns.map(({ title, unit, number: isNumber, value, shown: content = value }) =>
      dataCell(content(row) ?? "", isNumber && "number", title, unit)));
  let most = MOST_ROWS;
  function put() {
    const value = columns[by].value;
    const missing = (each) => each === null || each === undefined || Number.isNaN(each);
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) * (falling ? -1 : 1);
    });
    heads.forEach((head, at) => head.setAttribute("aria-sort", at === by ? (falling ? "descending" : "ascending") : "none"));
    const shown = sorted.slice(0, most);
    for (const row of shown) if (!made.has(row)) made.set(row, line(row));
    body.replaceChildren(...shown.map((row) => made.get(row)));
  }
  function sort(at) {
    falling = at === by ? !falling : Boolean(columns[at].number);
    by = at;
    put();
  }
  put();
  const more = rows.length > most && element("button", { type: "button", on: { click: () => {
    most = rows.length;
    put();
    part.focus({ preventScroll: true });
    more.remove();
  } } }, `Show all ${rows.length}`);
  const part = framed(rows.length > MOST_CARDS ? "sorted" : "sorted cards", caption, heads, body, more);
  return part;
}

// The matrix as a table: a cell for every pair, headings that stay in sight, one stop for the tab
// key. Ten thousand cells are built by cloning a row, and listened to as one.

import { median, members } from "./order.js";
import { UNKNOWN, button, element, replace } from "../shared/kit.js";
import { METRICS, decimals } from "../shared/metrics.js";

const [LEAST_WIDTH, LEAST_HEIGHT, MOST_CELL, CELL_TO_TOUCH] = [9, 11, 30, 24]; // px
const CHARACTER = 5.9; // px, of the headings' letters on average
const MOST_NAME = 220;
const [MEDIANS, GROUP_NAMES] = [50, 23]; // px of columns
const PAGE_STEP = 10;
const clamped = (value, least, most) => Math.max(least, Math.min(most, value));

// heard: { point(pair), open(pair, newTab), zoom([rows, columns]), out() }: regions are positions in the
// matrix, a pair is { src, dst }.
export class MatrixTable {
  constructor(container, heard) {
    Object.assign(this, { container, heard, current: null, pointed: [] });
    const on = (name, hear) => container.addEventListener(name, (event) => hear(event, this.place(event)));
    on("pointerdown", (event, place) => {
      this.brush(null);
      this.pressed = event.button === 0 && event.pointerType !== "touch" ? place : null;
    });
    on("pointerup", () => {
      this.pressed = null;
      if (!this.brushed) return;
      heard.zoom(this.brushed);
      this.isBrushing = true; // the click that follows opens nothing
      setTimeout(() => { this.isBrushing = false; });
    });
    on("pointerover", (event, place) => {
      if (!place || event.pointerType === "touch") return;
      if (this.pressed && event.buttons & 1) this.brush(this.pressed, place);
      this.point(place);
    });
    on("focusin", (_, place) => place && this.point(place));
    on("click", (event, place) => place && this.click(event, place));
    on("auxclick", (event, place) => place && event.button === 1 && this.click(event, place));
    on("keydown", (event, place) => place && !event.altKey && this.key(event));
  }

  // rows, columns: groups of order.js. label(id): a heading's text.
  build(matrix, rows, columns, label) {
    // Positions may differ from those before; regions are the same by their ids.
    const kept = this.current && [this.current.src, this.current.dst].map((at) => matrix.regions.indexOf(this.matrix.regions[at]));
    [this.brushed, this.anchor, this.pressed] = [null, null, null];
    [this.matrix, this.rows, this.columns] = [matrix, members(rows), members(columns)];
    const isGrouped = rows.length > 1 || columns.length > 1 || Boolean(rows[0]?.title);
    const { areas } = matrix;
    const opener = (area, text) => button(text, () => this.heard.toggle(area), { class: "area" });
    const nameOf = (at, id = matrix.regions[at]) => ({ title: id, text: areas?.has(id) ? `${id}: ${areas.get(id)} regions` : label(id),
      made: areas?.has(id) && opener(id, `${id}: ${areas.get(id)}`) });
    // A closed area has its name next to its figures: a second one has no room.
    this.titleOf = (title) => (!areas ? title : areas.has(title) && matrix.regions.includes(title) ? "" : opener(title, `${title} ×`));
    const height = this.fit(columns.length, isGrouped, this.rows.map((at) => nameOf(at).text));
    this.first = columns.flatMap((group) => group.members.map((_, at) => (at ? "" : " first")));
    const table = element("table", { class: isGrouped ? "matrix grouped" : "matrix", role: "grid", "aria-label": "Matrix, from row to column" },
      this.caption = element("caption", { class: "hidden-text" }),
      this.head(columns, isGrouped, nameOf), this.body(rows, isGrouped, nameOf, height));
    replace(this.container, table);
    const place = kept && [this.rows.indexOf(kept[0]), this.columns.indexOf(kept[1])];
    if (!place || place.includes(-1) || !this.settle(...place)) this.settle(0, Math.min(1, this.columns.length - 1));
  }

  // Cells are as large as the window has room for all of them, below the heads and beside the names;
  // where even the smallest are too wide, the table scrolls sideways. Returns their height.
  fit(groups, isGrouped, names) {
    this.width = this.container.clientWidth;
    const least = matchMedia("(pointer: coarse)").matches ? CELL_TO_TOUCH : 0;
    const longest = Math.ceil(Math.max(8, ...names.map((name) => name.length)) * CHARACTER) + 12;
    const name = Math.min(longest, MOST_NAME);
    this.leading = 2 + isGrouped;
    const wide = this.width - name - MEDIANS - GROUP_NAMES * isGrouped - 3 * groups;
    const high = innerHeight - name - MEDIANS - GROUP_NAMES * isGrouped - 3 * groups;
    const cell = (room, count, smallest) => clamped(Math.floor(room / Math.max(1, count)), Math.max(least, smallest), MOST_CELL);
    const width = cell(wide, this.columns.length, LEAST_WIDTH);
    const height = Math.min(width + 8, cell(high, this.rows.length, LEAST_HEIGHT));
    this.container.classList.toggle("fits", width * this.columns.length <= wide);
    for (const [key, px] of Object.entries({ width, height, names: name })) this.container.style.setProperty(`--${key}`, `${px}px`);
    return height;
  }

  head(columns, isGrouped, nameOf) {
    const cells = (tag, attributes, text = () => null) => this.columns.map((at, column) =>
      element(tag, { class: this.first[column] || null, ...attributes(at) }, element("span", {}, text(at))));
    const corner = element("td", { class: "corner", colspan: this.leading, rowspan: isGrouped ? 2 : 1 },
      element("span", { class: "to" }, "to →"), element("span", { class: "from" }, "from ↓"));
    const titles = isGrouped && element("tr", { class: "groups" }, corner, columns.map(({ title, members: { length: colspan } }) =>
      element("th", { scope: "colgroup", colspan, class: "first", title }, element("span", {}, this.titleOf(title)))));
    this.columnHeads = cells("th", (at) => ({ scope: "col", title: nameOf(at).title }), (at) => nameOf(at).made || nameOf(at).text);
    this.columnMedians = cells("td", () => ({}));
    return element("thead", {}, titles || null, element("tr", { class: "names" }, !isGrouped && corner, this.columnHeads),
      element("tr", { class: "medians" }, element("th", { scope: "row", colspan: this.leading, class: "corner" }, "median of column ↓, row →"), this.columnMedians));
  }

  body(rows, isGrouped, nameOf, height) {
    const pattern = element("tr", {}, this.columns.map((_, column) => element("td", { class: `cell${this.first[column]}` })));
    const lines = this.rows.map((_, row) => Object.assign(pattern.cloneNode(true), { row }));
    this.cells = lines.map((line) => [...line.children]);
    this.rowHeads = this.rows.map((at) => element("th", { scope: "row", class: "name", title: nameOf(at).title }, nameOf(at).made || nameOf(at).text));
    this.rowMedians = this.rows.map(() => element("td", { class: "median" }));
    lines.forEach((line, row) => line.prepend(this.rowHeads[row], this.rowMedians[row]));
    rows.reduce((row, { title, members: { length: rowspan } }) => {
      const name = element("span", {}, this.titleOf(title));
      name.style.maxHeight = `${rowspan * height}px`;
      lines[row].classList.add("first-row");
      if (isGrouped) lines[row].prepend(element("th", { scope: "rowgroup", rowspan, class: "group", title }, name));
      return row + rowspan;
    }, 0);
    return element("tbody", {}, lines);
  }

  // Colours all cells; the table stays.
  paint(matrix, scale) {
    this.matrix = matrix;
    const { metric, values, sources, isWanted } = matrix;
    const { shown, title, unit, none: missing = "unknown" } = METRICS[metric];
    this.caption.textContent = `${title}${unit ? ` in ${unit}` : ""}, from the region of the row to the region of the column. `
      + "Arrow keys move, Enter opens the pair.";
    const colour = scale.classOf;
    const none = (src, dst) => (src === dst ? ["self", "the region itself"]
      : isWanted && !isWanted(src, dst) ? ["other", "left out"] : ["unknown", missing]);
    this.rows.forEach((src, row) => this.columns.forEach((dst, column) => {
      const [cell, value, source] = [this.cells[row][column], values[src][dst], sources?.[src][dst]];
      const [kind, told] = value === null ? none(src, dst)
        : [`${colour(value)} ${source ?? "measured"}`, [shown(value), source].filter(Boolean).join(", ")];
      cell.className = `cell ${kind}${this.first[column]}`;
      cell.ariaLabel = told;
    }));
    const ofRows = this.rows.map((src) => median(this.columns.map((dst) => values[src][dst])));
    const ofColumns = this.columns.map((dst) => median(this.rows.map((src) => values[src][dst])));
    const places = decimals([...ofRows, ...ofColumns], 3);
    const put = (cell, text, value, kind) => {
      text.textContent = value === null ? UNKNOWN : metric === "age" ? shown(value) : value.toFixed(places);
      cell.className = `${kind} ${value === null ? "" : colour(value)}`;
    };
    this.rowMedians.forEach((cell, row) => put(cell, cell, ofRows[row], "median"));
    this.columnMedians.forEach((cell, column) => put(cell, cell.firstChild, ofColumns[column], this.first[column]));
  }

  // Where an event happened, as row and column of the table; null beside the cells.
  place(event) {
    const cell = event.target.closest?.("td.cell");
    const line = cell?.parentElement;
    return cell ? { row: line.row, column: cell.cellIndex - (line.cells.length - this.columns.length) } : null;
  }

  point({ row, column }) {
    this.pointed.forEach((head) => head.classList.remove("pointed"));
    this.pointed = [this.rowHeads[row], this.columnHeads[column]];
    this.pointed.forEach((head) => head.classList.add("pointed"));
    this.heard.point({ src: this.rows[row], dst: this.columns[column] });
  }

  brush(one, two) {
    for (const cell of this.marked ?? []) cell.removeAttribute("data-brushed");
    const part = (list, name) => list.slice(Math.min(one[name], two[name]), Math.max(one[name], two[name]) + 1);
    const isSome = one && (one.row !== two.row || one.column !== two.column);
    this.brushed = isSome ? [part(this.rows, "row"), part(this.columns, "column")] : null;
    this.marked = isSome ? part(this.cells, "row").flatMap((line) => part(line, "column")) : [];
    for (const cell of this.marked) cell.toggleAttribute("data-brushed", true);
  }

  // Of all cells, one is reached by the tab key; the others by arrows from there.
  settle(row, column) {
    const cell = this.cells[row]?.[column];
    if (!cell) return null;
    this.current?.cell.removeAttribute("tabindex");
    cell.tabIndex = 0;
    this.current = { cell, row, column, src: this.rows[row], dst: this.columns[column] };
    return cell;
  }

  click(event, { row, column }) {
    if (this.isBrushing) return;
    const isSecond = this.current?.row === row && this.current?.column === column && this.touched;
    this.settle(row, column).focus({ preventScroll: true });
    // A finger can't hover: its first touch shows the figures, the second opens the pair.
    if (event.pointerType === "touch" && !isSecond) this.touched = true;
    else this.open(event.ctrlKey || event.metaKey || event.button === 1);
  }

  open(newTab) {
    const { src, dst } = this.current;
    if (src !== dst) this.heard.open({ src, dst }, newTab);
  }

  key(event) {
    const { row, column } = this.current;
    const [bottom, right] = [this.rows.length - 1, this.columns.length - 1];
    const whole = event.ctrlKey || event.metaKey;
    const to = {
      ArrowUp: [whole ? 0 : row - 1, column], ArrowDown: [whole ? bottom : row + 1, column],
      ArrowLeft: [row, whole ? 0 : column - 1], ArrowRight: [row, whole ? right : column + 1],
      PageUp: [row - PAGE_STEP, column], PageDown: [row + PAGE_STEP, column],
      Home: [whole ? 0 : row, 0], End: [whole ? bottom : row, right],
    }[event.key];
    const isEnter = event.key === "Enter";
    if (to) {
      this.anchor = event.shiftKey ? this.anchor ?? { row, column } : null;
      this.settle(clamped(to[0], 0, bottom), clamped(to[1], 0, right)).focus();
      this.brush(this.anchor, this.anchor && this.current);
    } else if (event.key === "Escape") {
      this.anchor = null;
      return void (this.brushed ? this.brush(null) : this.heard.out());
    } else if (isEnter && this.brushed) this.heard.zoom(this.brushed);
    else if (isEnter || event.key === " ") this.open(whole);
    else return;
    event.preventDefault();
  }
}

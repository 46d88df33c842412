// The matrix as a table: a cell for every pair, headings that stay in sight, one stop for the tab
// key. Ten thousand cells are built by cloning a row, and listened to as one.

import { element, replace } from "../shared/dom.js";
import { UNKNOWN } from "../shared/format.js";
import { decimals, level, METRICS, shade } from "../shared/metrics.js";
import { median } from "../shared/quantiles.js";

const LEAST_CELL = 12;
const MOST_CELL = 30;
const CELL_TO_TOUCH = 24;
const CHARACTER = 5.9; // px, of the headings' letters on average
const MOST_NAME = 220;
const MOST_NAME_ON_A_PHONE = 150; // northamerica-northeast1 and 2 differ at their ends
const PAGE_STEP = 10;
const NAMED_AFTER_MS = 100;

// heard: { point(pair | null), open(pair, newTab), zoom(rows, columns), out() }: a pair is { src, dst } as
// positions, rows and columns are [first, last] as places in the table.
export class MatrixTable {
  constructor(container, heard) {
    this.container = container;
    this.heard = heard;
    this.current = null;
    this.pointed = [];
    container.addEventListener("pointerdown", (event) => this.press(event));
    container.addEventListener("pointerup", () => this.release());
    container.addEventListener("pointerover", (event) => this.point(event));
    container.addEventListener("pointerleave", () => heard.point(null));
    container.addEventListener("click", (event) => this.click(event));
    container.addEventListener("auxclick", (event) => event.button === 1 && this.click(event));
    container.addEventListener("keydown", (event) => this.key(event));
    container.addEventListener("focusin", (event) => this.focused(event));
  }

  // rows, columns: groups of order.js. label(id): a heading's text.
  build(matrix, rows, columns, label) {
    // Positions may differ from those before; regions are the same by their ids.
    const kept = this.current && [this.current.src, this.current.dst].map((at) => matrix.regions.indexOf(this.matrix.regions[at]));
    this.matrix = matrix;
    [this.brushed, this.anchor, this.pressed] = [null, null, null];
    this.rows = rows.flatMap((group) => group.members);
    this.columns = columns.flatMap((group) => group.members);
    this.width = this.container.clientWidth;
    const isGrouped = rows.length > 1 || columns.length > 1 || Boolean(rows[0]?.title);
    const names = this.rows.map((at) => label(matrix.regions[at]));
    const isSmall = innerWidth < 640;
    const longest = Math.ceil(Math.max(8, ...names.map((name) => name.length)) * CHARACTER) + 12;
    this.leading = (isGrouped ? 2 : 1) + (isSmall ? 0 : 1); // phones have no medians
    const nameWidth = Math.min(longest, isSmall ? MOST_NAME_ON_A_PHONE : MOST_NAME);
    const room = this.container.clientWidth - nameWidth - 73 - 3 * columns.length;
    const least = isSmall || matchMedia("(pointer: coarse)").matches ? CELL_TO_TOUCH : LEAST_CELL;
    const cell = Math.max(least, Math.min(MOST_CELL, Math.floor(room / Math.max(1, this.columns.length))));
    this.container.style.setProperty("--cell", `${cell}px`);
    this.container.style.setProperty("--names", `${nameWidth}px`);
    const starts = this.starts = new Set();
    columns.reduce((at, group) => { starts.add(at); return at + group.members.length; }, 0);
    const kind = isGrouped ? "matrix grouped" : "matrix";
    const table = element("table", { class: kind, role: "grid", "aria-label": "Matrix, from row to column" },
      this.caption = element("caption", { class: "hidden-text" }),
      this.head(columns, isGrouped, label, starts), this.body(rows, isGrouped, label, starts, cell));
    replace(this.container, table);
    const place = kept && [this.rows.indexOf(kept[0]), this.columns.indexOf(kept[1])];
    if (!place || place.includes(-1) || !this.settle(...place)) this.settle(0, Math.min(1, this.columns.length - 1));
  }

  head(columns, isGrouped, label, starts) {
    const corner = element("td", { class: "corner", colspan: this.leading, rowspan: isGrouped ? 2 : 1 },
      element("span", { class: "to" }, "to →"), element("span", { class: "from" }, "from ↓"));
    const titles = isGrouped && element("tr", { class: "groups" }, corner, columns.map((group) =>
      element("th", { scope: "colgroup", colspan: group.members.length, class: "first", title: group.title }, element("span", {}, group.title))));
    this.columnHeads = this.columns.map((at, column) => {
      const id = this.matrix.regions[at];
      return element("th", { scope: "col", class: starts.has(column) ? "first" : null, title: id }, element("span", {}, label(id)));
    });
    const names = element("tr", { class: "names" }, isGrouped ? null : corner, this.columnHeads);
    this.columnMedians = this.columns.map((_, column) => element("td", { class: starts.has(column) ? "first" : null }, element("span")));
    const medians = element("tr", { class: "medians" },
      element("th", { scope: "row", colspan: this.leading, class: "corner" }, "median of column ↓, row →"), this.columnMedians);
    return element("thead", {}, titles || null, names, medians);
  }

  body(rows, isGrouped, label, starts, cellHeight) {
    const pattern = element("tr");
    const cell = element("td", { class: "cell" });
    this.columns.forEach((_, column) => {
      const made = cell.cloneNode();
      if (starts.has(column)) made.classList.add("first");
      pattern.append(made);
    });
    this.cells = [];
    this.rowHeads = [];
    this.rowMedians = [];
    const lines = [];
    for (const group of rows) {
      group.members.forEach((at, place) => {
        const line = pattern.cloneNode(true);
        this.cells.push([...line.children]);
        const id = this.matrix.regions[at];
        const head = element("th", { scope: "row", class: "name", title: id }, label(id));
        const middle = element("td", { class: "median" });
        this.rowHeads.push(head);
        this.rowMedians.push(middle);
        line.prepend(head, middle);
        if (place === 0) line.classList.add("first-row");
        if (place === 0 && isGrouped) {
          const name = element("span", {}, group.title);
          name.style.maxHeight = `${group.members.length * cellHeight}px`;
          line.prepend(element("th", { scope: "rowgroup", rowspan: group.members.length, class: "group", title: group.title }, name));
        }
        line.row = this.cells.length - 1;
        lines.push(line);
      });
    }
    return element("tbody", {}, lines);
  }

  // Colours all cells; the table stays.
  paint(matrix, metric, scale) {
    this.matrix = matrix;
    const { shown, title, unit } = METRICS[metric];
    this.caption.textContent = `${title}${unit ? ` in ${unit}` : ""}, from the region of the row to the region of the column. `
      + "Arrow keys move, Enter opens the pair.";
    this.rows.forEach((src, row) => {
      const [values, sources] = [matrix.values[src], matrix.sources?.[src]];
      const cells = this.cells[row];
      this.columns.forEach((dst, column) => {
        const cell = cells[column];
        const value = values[dst];
        const first = this.starts.has(column) ? " first" : "";
        const source = sources?.[dst] ?? "measured";
        const kind = value === null ? (src === dst ? "self" : "unknown") : `l${shade(metric, level(scale.limits, value))} ${source}`;
        // What stays as it is costs the browser nothing.
        if (cell.kind !== kind) {
          cell.kind = kind;
          cell.className = `cell ${kind}${first}`;
        }
      });
    });
    // What screen readers say of cells comes a moment later: colours are not to wait for thousands of texts.
    this.container.ariaBusy = "true";
    clearTimeout(this.naming);
    this.naming = setTimeout(() => this.name(matrix, shown), NAMED_AFTER_MS);
    const middle = (values) => median(values.filter((value) => value !== null));
    const ofRows = this.rows.map((src) => middle(this.columns.map((dst) => matrix.values[src][dst])));
    const ofColumns = this.columns.map((dst) => middle(this.rows.map((src) => matrix.values[src][dst])));
    const places = decimals([...ofRows, ...ofColumns], 3);
    const text = (value) => {
      if (value === null) return UNKNOWN;
      return metric === "age" ? shown(value) : value.toFixed(places);
    };
    const colour = (value) => (value === null ? "" : `l${shade(metric, level(scale.limits, value))}`);
    this.rowMedians.forEach((cell, row) => {
      cell.textContent = text(ofRows[row]);
      cell.className = `median ${colour(ofRows[row])}`;
    });
    this.columnMedians.forEach((cell, column) => {
      cell.firstChild.textContent = text(ofColumns[column]);
      cell.className = `${colour(ofColumns[column])}${this.starts.has(column) ? " first" : ""}`;
    });
  }

  name(matrix, shown) {
    this.rows.forEach((src, row) => this.columns.forEach((dst, column) => {
      const value = matrix.values[src][dst];
      const source = matrix.sources?.[src][dst];
      this.cells[row][column].ariaLabel = value === null ? (src === dst ? "the region itself" : "unknown") : source ? `${shown(value)}, ${source}` : shown(value);
    }));
    this.container.ariaBusy = "false";
  }

  // Where an event happened, as row and column of the table; null beside the cells.
  place(event) {
    const cell = event.target.closest?.("td.cell");
    if (!cell) return null;
    const line = cell.parentElement;
    return { row: line.row, column: cell.cellIndex - (line.cells.length - this.columns.length) };
  }

  pair(row, column) {
    return { src: this.rows[row], dst: this.columns[column] };
  }

  mark(place) {
    this.pointed.forEach((head) => head.classList.remove("pointed"));
    this.pointed = place ? [this.rowHeads[place.row], this.columnHeads[place.column]] : [];
    this.pointed.forEach((head) => head.classList.add("pointed"));
  }

  point(event) {
    const place = this.place(event);
    if (!place || event.pointerType === "touch") return;
    this.mark(place);
    if (this.pressed && event.buttons & 1) this.brush(this.pressed, place);
    this.heard.point(this.pair(place.row, place.column));
  }

  press(event) {
    this.brush(null);
    this.pressed = event.button === 0 && event.pointerType !== "touch" ? this.place(event) : null;
  }

  release() {
    this.pressed = null;
    if (!this.brushed) return;
    this.zoom();
    this.isBrushing = true; // the click that follows opens nothing
    setTimeout(() => { this.isBrushing = false; });
  }

  // Marks the cells between two; null for none.
  brush(one, two) {
    const mark = (isMarked) => {
      const { rows, columns } = this.brushed;
      for (let row = rows[0]; row <= rows[1]; row += 1) {
        for (let column = columns[0]; column <= columns[1]; column += 1) this.cells[row][column].toggleAttribute("data-brushed", isMarked);
      }
    };
    if (this.brushed) mark(false);
    const span = (name) => [Math.min(one[name], two[name]), Math.max(one[name], two[name])];
    const isOne = !one || (one.row === two.row && one.column === two.column);
    this.brushed = isOne ? null : { rows: span("row"), columns: span("column") };
    if (this.brushed) mark(true);
  }

  zoom() {
    const { rows, columns } = this.brushed;
    this.heard.zoom(rows, columns);
  }

  focused(event) {
    const place = this.place(event);
    if (!place) return;
    this.mark(place);
    this.heard.point(this.pair(place.row, place.column));
  }

  // Of all cells, one is reached by the tab key; the others by arrows from there.
  settle(row, column) {
    const cell = this.cells[row]?.[column];
    if (!cell) return null;
    this.current?.cell.removeAttribute("tabindex");
    cell.tabIndex = 0;
    this.current = { cell, row, column, ...this.pair(row, column) };
    return cell;
  }

  click(event) {
    const place = this.place(event);
    if (!place || this.isBrushing) return;
    const isSecond = this.current?.row === place.row && this.current?.column === place.column && this.touched;
    this.settle(place.row, place.column)?.focus({ preventScroll: true });
    // A finger can't hover: its first touch shows the figures, the second opens the pair.
    if (event.pointerType === "touch" && !isSecond) {
      this.touched = true;
      return;
    }
    const { src, dst } = this.current;
    if (src !== dst) this.heard.open({ src, dst }, event.ctrlKey || event.metaKey || event.button === 1);
  }

  key(event) {
    if (!this.current || !event.target.closest?.("td.cell") || event.altKey) return;
    const { row, column, src, dst } = this.current;
    const [bottom, right] = [this.rows.length - 1, this.columns.length - 1];
    const whole = event.ctrlKey || event.metaKey;
    const to = {
      ArrowUp: [whole ? 0 : row - 1, column], ArrowDown: [whole ? bottom : row + 1, column],
      ArrowLeft: [row, whole ? 0 : column - 1], ArrowRight: [row, whole ? right : column + 1],
      PageUp: [row - PAGE_STEP, column], PageDown: [row + PAGE_STEP, column],
      Home: [whole ? 0 : row, 0], End: [whole ? bottom : row, right],
    }[event.key];
    if (to) {
      event.preventDefault();
      this.anchor = event.shiftKey ? this.anchor ?? { row, column } : null;
      this.settle(Math.max(0, Math.min(bottom, to[0])), Math.max(0, Math.min(right, to[1])))?.focus();
      this.brush(this.anchor, this.anchor && this.current);
    } else if (event.key === "Enter" && this.brushed) {
      event.preventDefault();
      this.zoom();
    } else if (event.key === "Escape") {
      this.anchor = null;
      if (this.brushed) this.brush(null);
      else this.heard.out();
    } else if ((event.key === "Enter" || event.key === " ") && src !== dst) {
      event.preventDefault();
      this.heard.open({ src, dst }, whole);
    }
  }
}

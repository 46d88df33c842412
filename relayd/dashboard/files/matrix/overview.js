// A matrix of more pairs than a table can hold, on a canvas: each square stands for k × k pairs and has
// the colour of their median. What is brushed is zoomed to, until a table shows single pairs.

import { element, replace } from "../shared/dom.js";
import { level, METRICS, shade } from "../shared/metrics.js";
import { median } from "../shared/quantiles.js";
import { colour, onTheme } from "../shared/shell.js";

const LEAST_SQUARE = 4; // px
const MOST_SQUARE = 12;
const LEFT = 92;
const TOP = 24;
const CLICKED = 40; // rows and columns that a click zooms to, at least

// heard: { point(text | null), zoom([first, last] of rows, [first, last] of columns), out() }
export class Overview {
  constructor(container, heard) {
    Object.assign(this, { container, heard, cursor: null, anchor: null });
    onTheme(() => this.canvas?.isConnected && this.draw());
  }

  build(matrix, rows, columns) {
    this.matrix = matrix;
    this.groups = { rows, columns };
    this.rows = rows.flatMap((group) => group.members);
    this.columns = columns.flatMap((group) => group.members);
    this.width = this.container.clientWidth;
    const room = this.width - LEFT - 2;
    this.k = Math.max(1, Math.ceil(Math.max(this.rows.length, this.columns.length) / Math.floor(room / LEAST_SQUARE)));
    [this.down, this.across] = [this.rows, this.columns].map((list) => Math.ceil(list.length / this.k));
    this.square = Math.min(MOST_SQUARE, Math.floor(room / Math.max(this.across, this.down)));
    [this.cursor, this.anchor] = [null, null];
    this.canvas = element("canvas", {
      tabindex: "0", role: "application",
      "aria-label": `Overview of ${this.rows.length} by ${this.columns.length} pairs, ${this.k} by ${this.k} in each square. `
        + "Arrow keys move, with Shift they select, Enter zooms in, Escape zooms out",
    });
    this.brush = element("div", { class: "brush", hidden: true });
    this.said = element("p", { class: "hidden-text", role: "status" });
    replace(this.container, element("div", { class: "overview" }, this.canvas, this.brush, this.said));
    this.listen();
  }

  paint(matrix, metric, scale) {
    Object.assign(this, { matrix, metric, scale });
    this.medians = Array.from({ length: this.down }, (_, down) => Array.from({ length: this.across }, (__, across) => median(this.valuesOf(down, across))));
    this.draw();
  }

  // The known figures of a square.
  valuesOf(down, across) {
    const found = [];
    const { k } = this;
    for (const src of this.rows.slice(down * k, (down + 1) * k)) {
      const row = this.matrix.values[src];
      for (const dst of this.columns.slice(across * k, (across + 1) * k)) if (row[dst] !== null) found.push(row[dst]);
    }
    return found;
  }

  draw() {
    const { canvas, square, medians } = this;
    const [width, height] = [LEFT + this.across * square, TOP + this.down * square];
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const shades = Array.from({ length: 9 }, (_, at) => colour(`shade-${shade(this.metric, at)}`));
    const gap = square > 5 ? 1 : 0;
    medians.forEach((line, down) => line.forEach((value, across) => {
      if (value === null) return;
      pen.fillStyle = shades[level(this.scale.limits, value)];
      pen.fillRect(LEFT + across * square, TOP + down * square, square - gap, square - gap);
    }));
    pen.fillStyle = colour("text");
    pen.strokeStyle = colour("line");
    pen.font = '600 12px system-ui, "Liberation Sans", sans-serif';
    const titles = (groups, each) => groups.reduce((at, group) => {
      each(group.title, (at / this.k) * square, (group.members.length / this.k) * square);
      return at + group.members.length;
    }, 0);
    pen.textBaseline = "top";
    titles(this.groups.columns, (title, at, size) => {
      if (size > pen.measureText(title).width + 6) pen.fillText(title, LEFT + at + 3, 4);
      pen.strokeRect(LEFT + at, TOP - 4, size - 1, 0.5);
    });
    titles(this.groups.rows, (title, at, size) => {
      if (size > 14) pen.fillText(title, 0, TOP + at + 1, LEFT - 8);
      pen.strokeRect(LEFT - 4, TOP + at, 0.5, size - 1);
    });
  }

  // The square below a pointer; null beside them.
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const [across, down] = [event.clientX - box.left - LEFT, event.clientY - box.top - TOP].map((px) => Math.floor(px / this.square));
    return down >= 0 && down < this.down && across >= 0 && across < this.across ? { down, across } : null;
  }

  // From the first to the last row (or column) between two squares.
  span(axis, list) {
    const [one, two] = [this.anchor ?? this.cursor, this.cursor].map((place) => place[axis]);
    return [Math.min(one, two) * this.k, Math.min(list.length, (Math.max(one, two) + 1) * this.k) - 1];
  }

  point(place, isSpoken = false) {
    this.cursor = place;
    this.brush.hidden = !place;
    if (!place) return this.heard.point(null);
    const [rows, columns] = [this.span("down", this.rows), this.span("across", this.columns)];
    Object.assign(this.brush.style, {
      left: `${LEFT + Math.floor(columns[0] / this.k) * this.square}px`, top: `${TOP + Math.floor(rows[0] / this.k) * this.square}px`,
      width: `${Math.ceil((columns[1] - columns[0] + 1) / this.k) * this.square}px`, height: `${Math.ceil((rows[1] - rows[0] + 1) / this.k) * this.square}px`,
    });
    const name = (list, [first, last]) => {
      const [one, two] = [first, last].map((at) => this.matrix.regions[list[at]]);
      return one === two ? one : `${one} to ${two}`;
    };
    const value = this.medians[place.down][place.across];
    const { title, shown } = METRICS[this.metric];
    const isOne = !this.anchor || (this.anchor.down === place.down && this.anchor.across === place.across);
    const said = {
      title: `${name(this.rows, rows)} → ${name(this.columns, columns)}`,
      value: isOne ? `${title}: ${value === null ? "unknown" : `${shown(value)}${this.k > 1 ? " in the median" : ""}`}`
        : `${rows[1] - rows[0] + 1} × ${columns[1] - columns[0] + 1} pairs selected`,
    };
    if (isSpoken) replace(this.said, `${said.title}. ${said.value}`);
    return this.heard.point(said);
  }

  // Zooms to what is brushed; a single square brings what is around it along.
  zoom() {
    const around = ([first, last], length) => {
      const more = Math.max(0, Math.ceil((CLICKED - (last - first + 1)) / 2));
      return [Math.max(0, first - more), Math.min(length - 1, last + more)];
    };
    this.heard.zoom(around(this.span("down", this.rows), this.rows.length), around(this.span("across", this.columns), this.columns.length));
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      const place = event.button === 0 ? this.place(event) : null;
      if (!place) return;
      this.anchor = place;
      if (event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
      this.point(place);
    });
    canvas.addEventListener("pointermove", (event) => {
      const place = this.place(event);
      if (!(event.buttons & 1)) this.anchor = null;
      if (place || !this.anchor) this.point(place);
    });
    canvas.addEventListener("pointerup", () => {
      if (this.anchor && this.cursor) this.zoom();
      this.anchor = null;
    });
    canvas.addEventListener("pointercancel", () => { this.anchor = null; });
    canvas.addEventListener("pointerleave", () => this.anchor || this.point(null));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        event.preventDefault();
        const { down, across } = this.cursor ?? { down: -step[0], across: -step[1] };
        this.anchor = event.shiftKey ? this.anchor ?? this.cursor : null;
        const limit = (value, most) => Math.max(0, Math.min(most - 1, value));
        this.point({ down: limit(down + step[0], this.down), across: limit(across + step[1], this.across) }, true);
      } else if (event.key === "Enter" && this.cursor) {
        event.preventDefault();
        this.zoom();
      } else if (event.key === "Escape") this.heard.out();
    });
  }
}

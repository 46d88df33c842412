// The map that all pages share: regions, and lines between them along great circles. It is turned to
// the middle of what is drawn and fitted to its ends; a colour is a figure's class, thickness is
// throughput, dashes say what kind of line it is. Drawn as SVG, with colours of the theme.

import { get } from "../shared/api.js";
import { drawn, element, replace } from "../shared/dom.js";
import { METRICS, level, shade } from "../shared/metrics.js";
import { folded } from "../shared/parts.js";
import { feature, geoGraticule10, geoPath } from "../vendor/geo.js";
import { greatest, KINDS, legend, markerOf, offered, scaleFor, thickness } from "./legend.js";
import { labels, spread } from "./marks.js";
import { frame, NARROW } from "./view.js";

const HINT = "Point at a line or a region for its figures.";
const MOST_NAMED = 4;
const ZOOM = 1.5;
const TURN_DEG = 15;
const [LEAST_ZOOM, MOST_ZOOM] = [0.4, 40];

let outline = null;
async function land() {
  outline ??= get("assets/world/land.json").then((world) => feature(world, world.objects.land));
  try {
    return await outline;
  } catch (error) {
    outline = null; // the next map asks again
    throw error;
  }
}

const hasPlace = (region) => region.latitude_deg !== null && region.longitude_deg !== null;

// What is not drawn is said, or a map without a line would be a riddle.
function hintOf({ regions, lines }) {
  const placed = new Set(regions.filter(hasPlace).map((region) => region.id));
  const missing = [...new Set(lines.flatMap(({ src, dst }) => [src, dst]).filter((id) => !placed.has(id)))];
  if (!missing.length) return HINT;
  const names = missing.length > MOST_NAMED ? `${missing.length} regions` : missing.join(", ");
  return `Links of ${names} are not drawn: ${missing.length === 1 ? "its" : "their"} place is not known.`;
}

// what: { regions, lines, marked, said, label }: lines are { src, dst, thickness, values, kind, said },
// thickness a throughput in the legend's unit, values by metric; marked regions have their name beside them,
// named ones too where there is room; said(region) is shown where it is pointed at.
// choose(region id): for a click; onMetric(metric): where the reader chose another.
export class WorldMap {
  constructor({ choose = () => {}, onMetric = () => {} } = {}) {
    Object.assign(this, { metric: "aggregate", choose, onMetric, what: null, width: 0, hint: HINT });
    this.holder = element("div", { class: "world", tabindex: "0", role: "group",
      "aria-label": "Map: arrow keys turn it, plus and minus zoom, 0 fits it again" });
    this.readout = element("p", { class: "readout muted" }, HINT);
    this.key = element("div");
    this.part = element("div", { class: "world-map" }, this.makeTools(), this.holder, this.readout, this.key);
    this.fit();
    this.listen();
    new ResizeObserver(() => {
      const width = Math.floor(this.holder.clientWidth);
      if (this.what && width && width !== this.width) this.draw();
    }).observe(this.holder);
  }

  // The same place in the page, with something else on it.
  async show(what, metric = this.metric) {
    try {
      this.world ??= await land();
    } catch (error) {
      replace(this.readout, `The map can't be drawn: ${error.message} `,
        element("button", { type: "button", on: { click: () => this.show(what, metric) } }, "Try again"));
      return;
    }
    Object.assign(this, { what, metric, hint: hintOf(what) });
    replace(this.readout, this.hint);
    this.fit();
    if (this.holder.clientWidth) this.draw();
  }

  fit() {
    this.moved = { turn: [0, 0], zoom: 1 };
  }

  draw() {
    this.width = Math.floor(this.holder.clientWidth);
    const at = new Map(this.what.regions.filter(hasPlace).map((region) => [region.id, [region.longitude_deg, region.latitude_deg]]));
    const lines = this.what.lines.filter((line) => at.has(line.src) && at.has(line.dst));
    const metrics = offered(lines);
    if (!metrics.includes(this.metric)) [this.metric = ""] = metrics;
    const scale = this.metric ? scaleFor(this.metric, this.what, lines) : null;
    const { projection, height, isWhole } = frame({
      lines: lines.map((line) => [at.get(line.src), at.get(line.dst)]), places: [...at.values()], width: this.width,
    });
    this.drawing = { at, lines, scale, height, isWhole, fitted: { rotate: projection.rotate(), scale: projection.scale(), translate: projection.translate() }, projection };
    replace(this.colours, metrics.map((name) => element("option", { value: name, selected: name === this.metric }, METRICS[name].title)));
    this.colours.parentElement.hidden = metrics.length < 2;
    replace(this.key, legend({ ...this.what, lines, metric: this.metric, scale, width: this.width }));
    this.paint();
  }

  // Only what turning and zooming change.
  paint() {
    const { at, lines, height, isWhole, fitted, projection } = this.drawing;
    const { turn, zoom } = this.moved;
    const width = this.width;
    const [x, y] = fitted.translate;
    projection.rotate([fitted.rotate[0] + turn[0], Math.max(-90, Math.min(90, fitted.rotate[1] + turn[1]))]).scale(fitted.scale * zoom)
      .translate([width / 2 + (x - width / 2) * zoom, height / 2 + (y - height / 2) * zoom]);
    const path = geoPath(projection).digits(1);
    const isSeen = (place) => path({ type: "Point", coordinates: place }) !== null;
    const marker = width < NARROW ? 3.6 : 5;
    const points = this.what.regions.filter((region) => at.has(region.id) && isSeen(at.get(region.id))).map((region) => {
      const [px, py] = projection(at.get(region.id));
      return { region, x: px, y: py };
    });
    spread(points, 2 * marker + 1);
    // Lines go to where their markers are.
    const placed = new Map(at);
    for (const point of points) {
      const moved = projection.invert([point.x, point.y]);
      if (moved.every(Number.isFinite)) placed.set(point.region.id, moved);
    }
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.what.label },
      isWhole ? drawn("path", { class: "sea", d: path({ type: "Sphere" }) }) : drawn("rect", { class: "sea", width, height }),
      drawn("path", { class: "graticule", d: path(geoGraticule10()) }),
      drawn("path", { class: "land", d: path(this.world) }),
      this.drawLines(lines, placed, path), points.map((point) => this.drawMarker(point, marker)), this.drawLabels(points, marker, height));
    replace(this.holder, svg);
  }

  drawLines(lines, placed, path) {
    const thick = thickness(greatest(lines), this.width);
    // Thin ones are drawn last, so that none is hidden.
    return [...lines].sort((a, b) => b.thickness - a.thickness).map((line) => {
      const d = path({ type: "LineString", coordinates: [placed.get(line.src), placed.get(line.dst)] });
      if (d === null) return null;
      const { dash, stroke } = KINDS[line.kind];
      const value = line.values[this.metric];
      const own = stroke ?? (value === undefined || value === null ? "plain" : `l${shade(this.metric, level(this.drawing.scale.limits, value))}`);
      const width = thick(line.thickness);
      const shared = { d, fill: "none", "stroke-dasharray": dash?.map((length) => (length * Math.max(1, width / 2.5)).toFixed(1)).join(" ") };
      const made = drawn("g", { class: "line", "data-link": `${line.src} ${line.dst}`, "data-kind": line.kind },
        drawn("path", { ...shared, class: "casing", "stroke-width": (width + 1.6).toFixed(2) }),
        drawn("path", { ...shared, class: `stroke ${own}`, "stroke-width": width.toFixed(2) }),
        // Thin lines are hard to meet: these are as wide as a finger.
        drawn("path", { d, class: "hit" }, drawn("title", {}, line.said)));
      made.said = line.said;
      return made;
    });
  }

  drawMarker({ region, x, y }, size) {
    const isMarked = this.what.marked.includes(region.id);
    const made = drawn("g", { class: isMarked ? "region marked" : "region", "data-region": region.id, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
      markerOf(region.provider, isMarked ? size * 1.3 : size), drawn("title", {}, this.what.said(region)));
    made.said = this.what.said(region);
    return made;
  }

  drawLabels(points, marker, height) {
    const of = new Map(points.map((point) => [point.region.id, point]));
    const { marked, named = [] } = this.what;
    const wanted = [...marked, ...named].filter((id) => of.has(id)).map((id, at) => ({ ...of.get(id), text: id, isEnd: at < marked.length }));
    return labels(wanted, { width: this.width, height, marker: marker * 1.3 + 1 }).map((label) => drawn("g", { class: "label" },
      label.isFar ? drawn("path", { class: "leader", d: `M${label.to[0].toFixed(1)} ${label.to[1].toFixed(1)}L${(label.x + label.width / 2).toFixed(1)} ${(label.y + label.height / 2).toFixed(1)}` }) : null,
      drawn("text", { x: (label.x + label.width / 2).toFixed(1), y: (label.y + 12).toFixed(1), "text-anchor": "middle" }, label.text)));
  }

  makeTools() {
    const button = (text, label, click) => element("button", { type: "button", "aria-label": label, title: label, on: { click } }, text);
    this.colours = element("select", { name: "metric", on: { change: (event) => {
      event.stopPropagation();
      this.metric = this.colours.value;
      this.fit();
      this.draw();
      this.onMetric(this.metric);
    } } });
    return element("div", { class: "world-tools row" }, element("label", {}, "Colour", this.colours),
      element("span", { class: "zooms", role: "group", "aria-label": "Zoom" },
        button("−", "Zoom out", () => this.zoom(1 / ZOOM)), button("+", "Zoom in", () => this.zoom(ZOOM)),
        button("Fit", "Fit to what is drawn", () => { this.fit(); this.paint(); })));
  }

  zoom(by) {
    this.moved.zoom = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, this.moved.zoom * by));
    this.paint();
  }

  // By degrees at the middle of the map.
  turn(east, north) {
    this.moved.turn[0] -= east;
    const limit = (value) => Math.max(-90, Math.min(90, value));
    const first = this.drawing.fitted.rotate[1];
    this.moved.turn[1] = this.drawing.isWhole ? 0 : limit(first + this.moved.turn[1] - north) - first;
    this.paint();
  }

  listen() {
    this.holder.addEventListener("keydown", (event) => {
      if (!this.drawing || event.altKey || event.ctrlKey || event.metaKey) return;
      const step = TURN_DEG / this.moved.zoom;
      const does = {
        ArrowLeft: () => this.turn(-step, 0), ArrowRight: () => this.turn(step, 0), ArrowUp: () => this.turn(0, step), ArrowDown: () => this.turn(0, -step),
        "+": () => this.zoom(ZOOM), "=": () => this.zoom(ZOOM), "-": () => this.zoom(1 / ZOOM), 0: () => { this.fit(); this.paint(); },
      }[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
    const said = (event) => event.target.closest?.(".line, .region")?.said;
    this.holder.addEventListener("pointerover", (event) => { replace(this.readout, said(event) ?? this.hint); });
    this.holder.addEventListener("pointerleave", () => { replace(this.readout, this.hint); });
    let from = null;
    let far = 0;
    this.holder.addEventListener("pointerdown", (event) => {
      from = event.button === 0 ? [event.clientX, event.clientY] : null;
      far = 0;
    });
    this.holder.addEventListener("pointermove", (event) => {
      if (!from || !(event.buttons & 1)) return;
      const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
      far += Math.hypot(dx, dy);
      if (far < 5) return; // a click
      from = [event.clientX, event.clientY];
      const degrees = 180 / Math.PI / (this.drawing.fitted.scale * this.moved.zoom);
      this.turn(-dx * degrees, dy * degrees);
    });
    this.holder.addEventListener("click", (event) => {
      const region = event.target.closest?.(".region")?.dataset.region;
      if (region && far < 5) this.choose(region);
    });
  }
}

// A part of a page with a map of its own, drawn when its title is opened.
export function mapPanel(title, what, more) {
  const map = new WorldMap();
  map.show(what);
  return folded("world-map", title, map.part, more);
}

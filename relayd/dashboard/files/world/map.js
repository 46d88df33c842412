// The map that all pages share: regions, and lines between them along great circles. Its middle meridian is that
// of what is drawn, to whose ends it is fitted. A colour is a figure's class or the kind of a path, and dashes tell
// kinds apart, too; thickness is throughput, unless colours tell that. Drawn as SVG, with colours of the theme.

import { button, drawn, element, figure, folded, get, once, replace } from "../shared/kit.js";
import { METRICS, scaleOf } from "../shared/metrics.js";
import { feature, geoEqualEarth, geoGraticule10, geoInterpolate, geoPath } from "../vendor/geo.js";

const HINT = "Point at a line or a region for its figures.";
const MOST_NAMED = 4;
const ZOOM = 1.5;
const TURN_DEG = 15;
const [LEAST_ZOOM, MOST_ZOOM] = [0.4, 40];
const THICKNESS = "aggregate"; // the figure that thickness tells, in Gbit/s
const clamped = (value, most, least = -most) => Math.max(least, Math.min(most, value));
const px = (value) => value.toFixed(1);

// The next map asks again for what did not come.
const land = once(async () => {
  const world = await get("assets/world/land.json");
  return feature(world, world.objects.land);
});

const hasPlace = (region) => region.latitude_deg !== null && region.longitude_deg !== null;
// What is not drawn is said, or a map without a line would be a riddle.
function hintOf({ regions, lines }) {
  const placed = new Set(regions.filter(hasPlace).map((region) => region.id));
  const missing = [...new Set(lines.flatMap(({ src, dst }) => [src, dst]).filter((id) => !placed.has(id)))];
  if (!missing.length) return HINT;
  const names = missing.length > MOST_NAMED ? `${missing.length} regions` : missing.join(", ");
  return `Links of ${names} are not drawn: ${missing.length === 1 ? "its" : "their"} place is not known.`;
}

// what: { regions, lines, marked, said, label }: lines are { src, dst, gbps, values, kind, said }, values by
// metric, where colours may tell them; marked regions have their name beside them,
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
      replace(this.readout, `The map can't be drawn: ${error.message} `, button("Try again", () => this.show(what, metric)));
      return;
    }
    Object.assign(this, { what, metric, hint: hintOf(what) });
    replace(this.readout, this.hint);
    this.fit();
    if (this.holder.clientWidth) this.draw();
  }

  fit() { this.moved = { east: 0, north: 0, zoom: 1 }; }

  draw() {
    this.width = Math.floor(this.holder.clientWidth);
    const at = new Map(this.what.regions.filter(hasPlace).map((region) => [region.id, [region.longitude_deg, region.latitude_deg]]));
    const lines = this.what.lines.filter((line) => at.has(line.src) && at.has(line.dst));
    const metrics = offered(lines);
    if (!metrics.includes(this.metric)) [this.metric = ""] = metrics;
    const scale = this.metric ? scaleFor(this.metric, this.what, lines) : null;
    const { projection, height } = frame({
      lines: lines.map((line) => [at.get(line.src), at.get(line.dst)]), places: [...at.values()], width: this.width,
    });
    const fitted = { east: projection.rotate()[0], scale: projection.scale(), translate: projection.translate() };
    this.drawing = { at, lines, scale, height, projection, fitted };
    replace(this.colours, metrics.map((name) =>
      element("option", { value: name, selected: name === this.metric }, METRICS[name]?.title ?? this.what.kindTitle)));
    this.colours.parentElement.hidden = metrics.length < 2;
    replace(this.key, legend({ ...this.what, lines, metric: this.metric, scale, width: this.width }));
    this.paint();
  }

  // Only what turning and zooming change.
  paint() {
    const { at, lines, height, fitted, projection } = this.drawing;
    const { east, north, zoom } = this.moved;
    const width = this.width;
    const [x, y] = fitted.translate;
    const scale = fitted.scale * zoom;
    projection.rotate([fitted.east - east, 0]).scale(scale)
      .translate([width / 2 + (x - width / 2) * zoom, height / 2 + (y - height / 2) * zoom + (north * scale) / DEGREES]);
    const path = geoPath(projection).digits(1);
    const isSeen = (place) => place && path({ type: "Point", coordinates: place }) !== null;
    const marker = width < NARROW ? 3.6 : 5;
    const { regions, marked } = this.what;
    const points = regions.filter(({ id }) => isSeen(at.get(id))).map((region) => {
      const [x, y] = projection(at.get(region.id));
      return { region, x, y };
    }).sort((a, b) => marked.includes(b.region.id) - marked.includes(a.region.id));
    spread(points, 2 * marker + 1);
    // Lines go to where their markers are.
    const placed = new Map(at);
    for (const point of points) {
      const moved = projection.invert([point.x, point.y]);
      if (moved.every(Number.isFinite)) placed.set(point.region.id, moved);
    }
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.what.label },
      drawn("path", { class: "sea", d: path({ type: "Sphere" }) }),
      drawn("path", { class: "graticule", d: path(geoGraticule10()) }),
      drawn("path", { class: "land", d: path(this.world) }),
      this.drawLines(lines, placed, path), points.map((point) => this.drawMarker(point, marker)), this.drawLabels(points, marker, height));
    replace(this.holder, svg);
    this.light(this.lit);
  }

  // Dims all lines but these links; all are alike without any.
  light(links) {
    this.lit = links;
    const lit = links && new Set(links.map((link) => link.join(" ")));
    for (const line of this.holder.querySelectorAll(".line")) line.classList.toggle("dim", Boolean(lit) && !lit.has(line.dataset.link));
  }

  drawLines(lines, placed, path) {
    const { metric, drawing: { scale } } = this;
    const thick = thickness(metric, lines, this.width);
    // Thin ones are drawn last, so that none is hidden.
    return [...lines].sort((a, b) => b.gbps - a.gbps).map((line) => {
      const d = path({ type: "LineString", coordinates: [placed.get(line.src), placed.get(line.dst)] });
      if (d === null) return null;
      const { dash, colour } = KINDS[line.kind];
      const value = line.values[metric];
      const own = !metric ? colour : isKnown(value) ? scale.classOf(value) : "plain";
      const width = thick(line.gbps);
      const shared = { d, fill: "none", "stroke-dasharray": dash?.map((length) => px(length * Math.max(1, width / 2.5))).join(" ") };
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
    const said = this.what.said(region);
    return Object.assign(drawn("g", { class: isMarked ? "region marked" : "region", "data-region": region.id,
      transform: `translate(${px(x)} ${px(y)})` },
    markerOf(region.provider, isMarked ? size * 1.3 : size), drawn("title", {}, said)), { said });
  }

  drawLabels(points, marker, height) {
    const of = new Map(points.map((point) => [point.region.id, point]));
    const { marked, named = [] } = this.what;
    const wanted = [...marked, ...named].filter((id) => of.has(id)).map((id, at) => ({ ...of.get(id), text: id, isEnd: at < marked.length }));
    return labels(wanted, { width: this.width, height, marker: marker * 1.3 + 1 }).map(({ x, y, width, isFar, to, text }) => {
      const middle = px(x + width / 2);
      return drawn("g", { class: "label" },
        isFar && drawn("path", { class: "leader", d: `M${to.map(px).join(" ")}L${middle} ${px(y + LINE / 2)}` }),
        drawn("text", { x: middle, y: px(y + 12), "text-anchor": "middle" }, text));
    });
  }

  makeTools() {
    const tool = (text, title, click) => button(text, click, { "aria-label": title, title });
    this.colours = element("select", { name: "metric", on: { change: (event) => {
      event.stopPropagation();
      this.metric = this.colours.value;
      this.fit();
      this.draw();
      this.onMetric(this.metric);
    } } });
    return element("div", { class: "world-tools row" }, element("label", {}, "Colour", this.colours),
      element("span", { class: "zooms", role: "group", "aria-label": "Zoom" }, tool("−", "Zoom out", () => this.zoom(1 / ZOOM)),
        tool("+", "Zoom in", () => this.zoom(ZOOM)), tool("Fit", "Fit to what is drawn", () => this.refit())));
  }

  refit() {
    this.fit();
    this.paint();
  }

  zoom(by) {
    this.moved.zoom = clamped(this.moved.zoom * by, MOST_ZOOM, LEAST_ZOOM);
    this.paint();
  }

  // By degrees at the middle of the map.
  turn(east, north) {
    this.moved.east += east;
    this.moved.north = clamped(this.moved.north + north, 90);
    this.paint();
  }

  listen() {
    this.holder.addEventListener("keydown", (event) => {
      if (!this.drawing || event.altKey || event.ctrlKey || event.metaKey) return;
      const step = TURN_DEG / this.moved.zoom;
      const does = {
        ArrowLeft: () => this.turn(-step, 0), ArrowRight: () => this.turn(step, 0), ArrowUp: () => this.turn(0, step), ArrowDown: () => this.turn(0, -step),
        "+": () => this.zoom(ZOOM), "=": () => this.zoom(ZOOM), "-": () => this.zoom(1 / ZOOM), 0: () => this.refit(),
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
      const degrees = DEGREES / (this.drawing.fitted.scale * this.moved.zoom);
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

// How lines and markers are drawn, and what that means.

// Kinds of lines by their dashes; those of paths have colours, too.
const KINDS = {
  measured: {}, inferred: { dash: [5, 2.5] }, baseline: { dash: [2, 2.5] },
  chosen: { colour: "of-chosen" }, direct: { dash: [5, 3], colour: "of-direct" }, "best relay": { dash: [2, 2], colour: "of-relay" },
  other: { dash: [1, 3], colour: "of-cap" },
};
const SHAPES = {
  aws: "circle",
  azure: "-0.85,-0.85 0.85,-0.85 0.85,0.85 -0.85,0.85",
  gcp: "0,-1.1 1.05,0.8 -1.05,0.8",
};
const OTHER = "0,-1.2 1.2,0 0,1.2 -1.2,0";

function markerOf(provider, size) {
  const shape = SHAPES[provider] ?? OTHER;
  if (shape === "circle") return drawn("circle", { r: size });
  return drawn("polygon", { points: shape.replace(/[-.\d]+/g, (value) => px(value * size)) });
}

const greatest = (lines) => Math.max(...lines.map((line) => line.gbps), 1e-9);

// From throughput to pixels, between lines that carry nothing and the most; all are alike where colours tell it.
function thickness(metric, lines, width) {
  const [thin, fat] = width < NARROW ? [0.9, 4] : [1.1, 7];
  const most = greatest(lines);
  return (gbps) => thin + (fat - thin) * (metric === THICKNESS ? 0.3 : gbps / most);
}

// What colours can tell: kinds of paths (""), and the metrics that lines have, in the order of METRICS.
const isKnown = (value) => value !== undefined && value !== null;
const offered = (lines) => ["", ...Object.keys(METRICS)].filter((name) => (name
  ? lines.some((line) => isKnown(line.values[name])) : lines.every((line) => KINDS[line.kind].colour)));

// Classes rest on all lines, so that they stay while some are left out.
const scaleFor = (metric, { all }, lines) => scaleOf(metric, (all ?? lines).map((line) => [line.values[metric] ?? null]));

const ROUND = [1, 2, 2.5, 5, 10];
function rounded(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  const apart = (each) => Math.abs(Math.log((each * size) / value));
  return size * ROUND.reduce((best, each) => (apart(each) < apart(best) ? each : best));
}

// A few round rates up to the greatest.
function steps(most) {
  const size = rounded(most / 4);
  return [1, 2, 3, 4].map((times) => Number((times * size).toPrecision(3))).filter((value) => value <= most);
}

const line = (name, styles) => {
  const made = drawn("line", { x1: 0, x2: 34, y1: 6, y2: 6, class: name });
  Object.assign(made.style, styles);
  return drawn("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" }, made);
};
const group = (title, entries) => element("dl", {}, element("dt", {}, title), entries.map(([picture, text]) => element("dd", {}, picture, text)));

function legend({ regions, lines, kindTitle, metric, scale, width }) {
  const kinds = Object.keys(KINDS).filter((name) => lines.some((each) => each.kind === name));
  const thick = thickness(metric, lines, width);
  const providers = [...new Set(regions.map((region) => region.provider))].sort();
  const sizes = metric === THICKNESS ? [] : steps(greatest(lines));
  return element("div", { class: "world-legend" }, metric && colours(metric, scale, lines),
    kinds.length > 0 && group(`${metric ? "Dashes" : "Colour and dashes"}: ${kindTitle.toLowerCase()}`, kinds.map((name) => [
      line(metric ? null : KINDS[name].colour, { strokeWidth: "3px", strokeDasharray: KINDS[name].dash?.join(" ") ?? "none" }), name])),
    lines.length > 0 && sizes.length > 0 && group("Thickness: Gbit/s", sizes.map((gbps) =>
      [line(null, { strokeWidth: `${thick(gbps)}px` }), figure(gbps)])),
    group("Provider", providers.map((name) => [drawn("svg", { class: "region", width: 14, height: 14, viewBox: "-7 -7 14 14",
      "aria-hidden": "true" }, markerOf(name, 5.5)), name])));
}

function colours(metric, { classes, classOf }, lines) {
  const found = new Set(lines.map((each) => each.values[metric]).filter(isKnown).map(classOf));
  const { title, unit, best } = METRICS[metric];
  return group(`Colour: ${title}${unit && `, ${unit}`}: the stronger, the ${best}`, classes.filter(([name]) => found.has(name))
    .map(([name, text]) => [element("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text]));
}

// Markers that would overlap are moved apart; labels find a place where they cover nothing that counts.

const LINE = 16;
// As base.css has it for labels.
const pen = document.createElement("canvas").getContext("2d");
pen.font = '600 13px system-ui, "Liberation Sans", sans-serif';

// points: [{ x, y }], changed in place: one that would lie on another takes the nearest free place around it.
const AROUND = Array.from({ length: 80 }, (_, at) => [0.45 * Math.sqrt(at), at * Math.PI * (3 - Math.sqrt(5))])
  .map(([far, angle]) => [far * Math.cos(angle), far * Math.sin(angle)]);
function spread(points, apart) {
  const taken = [];
  for (const point of points) {
    const isFree = ([dx, dy]) => taken.every(({ x, y }) => Math.hypot(x - point.x - dx * apart, y - point.y - dy * apart) >= apart);
    const [dx, dy] = AROUND.find(isFree) ?? [0, 0];
    taken.push(Object.assign(point, { x: point.x + dx * apart, y: point.y + dy * apart }));
  }
}

const meet = (a, b, at, size) => a[at] < b[at] + b[size] && b[at] < a[at] + a[size];
const overlap = (a, b) => meet(a, b, "x", "width") && meet(a, b, "y", "height");
const DIRECTIONS = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]];

// wanted: [{ x, y, text, isEnd }], the most important first. Returns those that have a place, each with its
// box: that of an end may be far from its marker, to which a line leads then.
function labels(wanted, { width, height, marker }) {
  const boxes = wanted.map(({ x, y }) => ({ x: x - marker, y: y - marker, width: 2 * marker, height: 2 * marker }));
  return wanted.flatMap(({ x, y, text, isEnd }) => {
    const size = { width: Math.ceil(pen.measureText(text).width) + 6, height: LINE };
    const places = (isEnd ? [3, 18, 36, 56] : [3]).map((beyond) => marker + beyond).flatMap((away) => DIRECTIONS.map(([dx, dy]) => ({
      ...size, isFar: away > marker + 3, text, to: [x, y],
      x: clamped(x + dx * away - size.width * (1 - dx) / 2, width - size.width - 2, 2),
      y: clamped(y + dy * away - LINE * (1 - dy) / 2, height - LINE - 2, 2),
    })));
    const free = places.find((box) => !boxes.some((other) => overlap(box, other)));
    if (free) boxes.push(free);
    return free ?? [];
  });
}

// What part of the world a map shows: turned to the middle of what is to be seen, and fitted to its ends.

const DEGREES = 180 / Math.PI;
const STEPS = 12; // samples of a great circle
const WORLD = [[-150, -50], [150, 70]]; // where no region has a place
const NARROWEST_DEG = 9; // ends in one city are seen with what is around them
// A window narrower than this has smaller markers, and taller maps.
const NARROW = 600;

function greatCircle(ends) {
  const along = geoInterpolate(...ends);
  return Array.from({ length: STEPS + 1 }, (_, step) => along(step / STEPS));
}

// lines: pairs of places; places: others to be seen. Returns { projection, height }.
function frame({ lines, places, width }) {
  const seen = lines.length ? lines.flatMap(greatCircle) : places.length ? places : WORLD;
  const mean = (axis) => seen.reduce((sum, [longitude]) => sum + Math[axis](longitude / DEGREES), 0);
  const projection = geoEqualEarth().precision(0.3).rotate([-Math.atan2(mean("sin"), mean("cos")) * DEGREES, 0]);
  const [isNarrow, margin] = width < NARROW ? [true, 34] : [false, 56];
  const around = seen.slice(0, 1).flatMap(([longitude, latitude]) => [-NARROWEST_DEG, NARROWEST_DEG]
    .map((beside) => [longitude + beside, clamped(latitude + beside, 80)]));
  const focus = { type: "MultiPoint", coordinates: [...seen, ...around] };
  projection.fitWidth(width - 2 * margin, focus);
  const ys = focus.coordinates.map((each) => projection(each)[1]);
  const tall = Math.max(...ys) - Math.min(...ys) + 2 * margin;
  const height = Math.round(clamped(tall, isNarrow ? Math.min(width, Math.max(0.45 * innerHeight, 280)) : Math.min(0.5 * width, 560), width * (isNarrow ? 0.6 : 0.42)));
  projection.fitExtent([[margin, margin], [width - margin, height - margin]], focus);
  return { projection, height };
}

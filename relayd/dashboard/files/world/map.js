// The map that all pages share: regions, and lines between them along great circles. It is turned to
// the middle of what is drawn and fitted to its ends; a colour is a figure's class, thickness is
// throughput, dashes say what kind of line it is. Drawn as SVG, with colours of the theme.

import { button, drawn, element, figure, folded, get, once, replace } from "../shared/kit.js";
import { METRICS, classText, level, scaleOf, shade } from "../shared/metrics.js";
import {
  feature, geoAzimuthalEqualArea, geoDistance, geoEqualEarth, geoGraticule10, geoInterpolate,
  geoPath,
} from "../vendor/geo.js";

const HINT = "Point at a line or a region for its figures.";
const MOST_NAMED = 4;
const ZOOM = 1.5;
const TURN_DEG = 15;
const [LEAST_ZOOM, MOST_ZOOM] = [0.4, 40];

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

// How lines and markers are drawn, and what that means.

// Kinds of lines by their dashes; those in trouble have a colour of their own.
const KINDS = {
  measured: {}, inferred: { dash: [5, 2.5] }, baseline: { dash: [2, 2.5] },
  chosen: {}, direct: { dash: [5, 3] }, "best relay": { dash: [2, 2] },
  "relayed paths of the table": {}, down: { dash: [2, 3], stroke: "bad" }, degraded: { dash: [5, 3], stroke: "warn" },
};
const SHAPES = {
  aws: "circle",
  azure: "-0.85,-0.85 0.85,-0.85 0.85,0.85 -0.85,0.85",
  gcp: "0,-1.1 1.05,0.8 -1.05,0.8",
};
const OTHER = "0,-1.2 1.2,0 0,1.2 -1.2,0";

function markerOf(provider, size) {
  const shape = SHAPES[provider] ?? OTHER;
  return shape === "circle" ? drawn("circle", { r: size })
    : drawn("polygon", { points: shape.split(" ").map((point) => point.split(",").map((value) => (value * size).toFixed(1)).join(",")).join(" ") });
}

const greatest = (lines) => Math.max(...lines.map((line) => line.thickness), 1e-9);

// From throughput to pixels, between lines that carry nothing and the most.
function thickness(most, width) {
  const [thin, fat] = width < NARROW ? [0.9, 4] : [1.1, 7];
  return (value) => thin + (fat - thin) * (value / most);
}

// The metrics that lines have, in the order of METRICS.
const isKnown = (value) => value !== undefined && value !== null;
const offered = (lines) => Object.keys(METRICS).filter((name) => lines.some((line) => isKnown(line.values[name])));

// Classes rest on all lines, so that they stay while some are left out.
const scaleFor = (metric, { all }, lines) => scaleOf(metric, (all ?? lines).map((line) => [line.values[metric] ?? null]));

// A few round rates up to the greatest.
function steps(most) {
  const step = 10 ** Math.floor(Math.log10(most));
  const size = most / step < 2 ? step / 2 : most / step < 5 ? step : 2 * step;
  return [1, 2, 3, 4].map((times) => Number((times * size).toPrecision(3))).filter((value) => value <= most);
}

const line = (styles) => {
  const made = drawn("line", { x1: 0, x2: 34, y1: 6, y2: 6 });
  Object.assign(made.style, styles);
  return drawn("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" }, made);
};
const group = (title, entries) => element("dl", {}, element("dt", {}, title), entries.map(([picture, text]) => element("dd", {}, picture, text)));

function legend({ regions, lines, kindTitle, metric, scale, unit = "Gbit/s", width }) {
  const kinds = Object.keys(KINDS).filter((name) => lines.some((each) => each.kind === name));
  const thick = thickness(greatest(lines), width);
  const providers = [...new Set(regions.map((region) => region.provider))].sort();
  return element("div", { class: "world-legend" },
    metric && colours(metric, scale, lines),
    lines.length > 0 && group(`Thickness, ${unit}`, steps(greatest(lines)).map((value) => [line({ stroke: "var(--text)", strokeWidth: `${thick(value)}px` }), figure(value)])),
    kinds.length > 0 && group(kindTitle, kinds.map((name) => [
      line({ stroke: `var(--${KINDS[name].stroke ?? "text"})`, strokeWidth: "3px", strokeDasharray: KINDS[name].dash?.join(" ") ?? "none" }), name])),
    group("Provider", providers.map((name) => [drawn("svg", { class: "region", width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, markerOf(name, 5.5)), name])));
}

// The classes that occur.
function colours(metric, { limits }, lines) {
  const values = lines.map((each) => each.values[metric]).filter(isKnown);
  const found = [...new Set(values.map((value) => level(limits, value)))].sort((a, b) => a - b);
  const { title, unit, best } = METRICS[metric];
  return group(`${title}${unit && `, ${unit}`}: the stronger, the ${best}`, found.map((at) => [
    element("span", { class: `swatch l${shade(metric, at)}`, "aria-hidden": "true" }), classText(metric, limits, at)]));
}

// Markers that would overlap are moved apart; labels find a place where they cover nothing that counts.

const ROUNDS = 60;
const FARTHEST = 4; // markers away from its place one may be moved, or it would tell a lie
const LINE = 16;
// As base.css has it for labels.
const pen = document.createElement("canvas").getContext("2d");
pen.font = '600 13px system-ui, "Liberation Sans", sans-serif';

// points: [{ x, y }], changed in place: those nearer than `apart` px are moved apart.
function spread(points, apart) {
  const homes = points.map(({ x, y }) => [x, y]);
  points.forEach((point, at) => { // those at the very same place begin in different directions
    point.x += 0.01 * Math.cos(at);
    point.y += 0.01 * Math.sin(at);
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const moved = points.map((one, at) => points.slice(at + 1).map((other) => pushed(one, other, apart)).some(Boolean));
    if (!moved.some(Boolean)) break;
  }
  points.forEach((point, at) => {
    const [dx, dy] = [point.x - homes[at][0], point.y - homes[at][1]];
    const share = Math.min(1, (FARTHEST * apart) / (Math.hypot(dx, dy) || 1));
    [point.x, point.y] = [homes[at][0] + dx * share, homes[at][1] + dy * share];
  });
}

function pushed(one, other, apart) {
  const [dx, dy] = [other.x - one.x, other.y - one.y];
  const distance = Math.hypot(dx, dy);
  if (distance >= apart * 0.999) return false;
  const step = (apart - distance) / 2 / (distance || 1);
  one.x -= dx * step;
  one.y -= dy * step;
  other.x += dx * step;
  other.y += dy * step;
  return true;
}

const overlap = (a, b) => Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x))
  * Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));
const DIRECTIONS = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]];

// wanted: [{ x, y, text, isEnd }], the most important first. Returns those that have a place, each with its
// box: that of an end may be far from its marker, to which a line leads then.
function labels(wanted, { width, height, marker }) {
  const boxes = wanted.map(({ x, y }) => ({ x: x - marker, y: y - marker, width: 2 * marker, height: 2 * marker }));
  const found = [];
  for (const { x, y, text, isEnd } of wanted) {
    const size = { width: Math.ceil(pen.measureText(text).width) + 6, height: LINE };
    const places = (isEnd ? [3, 18, 36, 56] : [3]).map((beyond) => marker + beyond).flatMap((away) => DIRECTIONS.map(([dx, dy]) => ({
      ...size, isFar: away > marker + 3,
      x: Math.max(2, Math.min(width - size.width - 2, x + dx * away - size.width * (1 - dx) / 2)),
      y: Math.max(2, Math.min(height - LINE - 2, y + dy * away - LINE * (1 - dy) / 2)),
    })));
    const free = places.find((box) => boxes.every((other) => overlap(box, other) === 0));
    if (!free) continue;
    boxes.push(free);
    found.push({ ...free, text, to: [x, y] });
  }
  return found;
}

// What part of the world a map shows, and by which projection: turned to the middle of what is to be
// seen, and fitted to its ends.

const DEGREES = 180 / Math.PI;
const STEPS = 12; // samples of a great circle
const ENCLOSING_STEPS = 40;
const WIDEST_DEG = 68; // a flat map of more than this around its middle is one of the whole world,
const WIDEST_NARROW_DEG = 110; // which on a phone is too low to read: round, the same fills a square
const NARROWEST_DEG = 9; // ends in one city are seen with what is around them
const [TOP_DEG, BOTTOM_DEG] = [76, -54]; // of the world without its ice
const HOME_DEG = 10; // east: the usual middle of a map of the world
// A window narrower than this has smaller markers, and taller maps.
const NARROW = 600;

const WORLD = { at: [HOME_DEG, 20], radius_deg: 180 };

const vector = ([longitude, latitude]) => {
  const [l, p] = [longitude / DEGREES, latitude / DEGREES];
  return [Math.cos(p) * Math.cos(l), Math.cos(p) * Math.sin(l), Math.sin(p)];
};
const place = ([x, y, z]) => [Math.atan2(y, x) * DEGREES, Math.atan2(z, Math.hypot(x, y)) * DEGREES];

function greatCircle([from, to]) {
  const along = geoInterpolate(from, to);
  return Array.from({ length: STEPS + 1 }, (_, step) => along(step / STEPS));
}

// The middle of places and how far they reach around it: { at, radius_deg }. The circle is the smallest
// that was found on the way from their mean towards whichever place is farthest, in ever shorter steps.
function around(places) {
  const found = places.map(vector);
  const sum = found.reduce((a, b) => a.map((value, axis) => value + b[axis]), [0, 0, 0]);
  let middle = Math.hypot(...sum) > 1e-6 * places.length ? sum : found[0];
  let best = null;
  for (let step = 1; step <= ENCLOSING_STEPS; step += 1) {
    const at = place(middle);
    const distances = places.map((each) => geoDistance(at, each));
    const radius_deg = Math.max(...distances) * DEGREES;
    if (!best || radius_deg < best.radius_deg) best = { at, radius_deg };
    const [from, to] = [vector(at), found[distances.indexOf(Math.max(...distances))]];
    middle = from.map((value, axis) => value + (to[axis] - value) / (step + 1));
  }
  return best;
}

// Places on a circle, for fitting what lies inside.
function circle([longitude, latitude], radius_deg) {
  const [x, y, z] = vector([longitude, latitude]);
  const east = [-Math.sin(longitude / DEGREES), Math.cos(longitude / DEGREES), 0];
  const north = [-z * Math.cos(longitude / DEGREES), -z * Math.sin(longitude / DEGREES), Math.hypot(x, y)];
  const [inward, out] = [Math.cos(radius_deg / DEGREES), Math.sin(radius_deg / DEGREES)];
  return Array.from({ length: 8 }, (_, at) => {
    const [a, b] = [Math.cos((at * Math.PI) / 4), Math.sin((at * Math.PI) / 4)];
    return place([x, y, z].map((value, axis) => inward * value + out * (a * east[axis] + b * north[axis])));
  });
}

const points = (coordinates) => ({ type: "MultiPoint", coordinates });

// lines: pairs of places; places: others to be seen.
// Returns { projection, height, isWhole }; isWhole says that the map has edges of its own.
function frame({ lines, places, width }) {
  const curves = lines.map(greatCircle);
  const seen = curves.flat().concat(lines.length ? [] : places);
  const middle = seen.length ? around(seen) : WORLD;
  const isNarrow = width < NARROW;
  const margin = isNarrow ? 34 : 56;
  if (middle.radius_deg > (isNarrow ? WIDEST_NARROW_DEG : WIDEST_DEG)) {
    const projection = geoEqualEarth().precision(0.3).fitWidth(width, { type: "Sphere" });
    const latitudes = curves.flat().map(([, latitude]) => latitude);
    const [north, south] = [Math.max(TOP_DEG, ...latitudes), Math.min(BOTTOM_DEG, ...latitudes)];
    const [[, top], [, bottom]] = [Math.min(90, north + 3), south].map((latitude) => projection([0, latitude]));
    projection.rotate([-middle.at[0], 0]);
    const [x, y] = projection.translate();
    return { projection: projection.translate([x, y - top]), height: Math.round(bottom - top), isWhole: true };
  }
  const focus = points([...seen, ...circle(middle.at, NARROWEST_DEG)]);
  const projection = geoAzimuthalEqualArea().rotate([-middle.at[0], -middle.at[1]]).clipAngle(150).precision(0.3);
  projection.fitWidth(width - 2 * margin, focus);
  const ys = focus.coordinates.map((each) => projection(each)[1]);
  const tall = Math.max(...ys) - Math.min(...ys) + 2 * margin;
  const height = Math.round(Math.max(width * (isNarrow ? 0.75 : 0.42), Math.min(tall, isNarrow ? width : Math.min(0.5 * width, 560))));
  projection.fitExtent([[margin, margin], [width - margin, height - margin]], focus);
  return { projection, height, isWhole: false };
}

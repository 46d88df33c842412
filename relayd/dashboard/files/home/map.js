// One small map: regions, links in trouble, and the relays of the table. Drawn without the bundle of
// charts, which is larger than all else on the page together.

import { element, replace } from "../shared/dom.js";
import { redraw } from "../shared/parts.js";

const SVG = "http://www.w3.org/2000/svg";
const RADIANS = Math.PI / 180;
const [WIDTH, TOP_DEG, BOTTOM_DEG] = [720, 78, -56];
const STEPS = 32;

// Equal Earth (Savric, Patterson, Jenny, 2018), in units of the sphere's radius.
const [A1, A2, A3, A4, M] = [1.340264, -0.081106, 0.000893, 0.003796, Math.sqrt(3) / 2];
function projected([longitude, latitude]) {
  const theta = Math.asin(M * Math.sin(latitude * RADIANS));
  const square = theta * theta;
  const sixth = square ** 3;
  return [
    (longitude * RADIANS * Math.cos(theta)) / (M * (A1 + 3 * A2 * square + sixth * (7 * A3 + 9 * A4 * square))),
    theta * (A1 + A2 * square + sixth * (A3 + A4 * square)),
  ];
}
const SCALE = WIDTH / (2 * projected([180, 0])[0]);
const at = (place) => {
  const [x, y] = projected(place);
  return [WIDTH / 2 + SCALE * x, -SCALE * y];
};
const TOP = at([0, TOP_DEG])[1];
const HEIGHT = at([0, BOTTOM_DEG])[1] - TOP;
const pixel = (place) => {
  const [x, y] = at(place);
  return `${x.toFixed(1)} ${(y - TOP).toFixed(1)}`;
};

// A line of places as a path. Where it crosses 180 degrees it goes on beyond the edge of the map, and
// is drawn once more from the other edge; what is outside of the world is clipped.
function path(places, end = "") {
  let before = places[0][0];
  let turns = 0;
  const line = places.map(([longitude, latitude]) => {
    if (Math.abs(longitude - before) > 180) turns += longitude < before ? 360 : -360;
    before = longitude;
    return [longitude + turns, latitude];
  });
  const [west, east] = [Math.min(...line.map(([longitude]) => longitude)), Math.max(...line.map(([longitude]) => longitude))];
  const copies = [0, east > 180 ? -360 : null, west < -180 ? 360 : null].filter((shift) => shift !== null);
  return copies.map((shift) => `M${line.map(([longitude, latitude]) => pixel([longitude + shift, latitude])).join("L")}${end}`).join("");
}

function worldEdge() {
  const latitudes = Array.from({ length: 19 }, (_, step) => TOP_DEG + (step / 18) * (BOTTOM_DEG - TOP_DEG));
  return `M${[...latitudes.map((latitude) => [180, latitude]), ...latitudes.reverse().map((latitude) => [-180, latitude])].map(pixel).join("L")}Z`;
}

// Rings of a TopoJSON: steps between whole numbers, as arcs that rings share.
function land({ arcs, transform: { scale, translate }, objects }) {
  const lines = arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx, dy]) => {
      [x, y] = [x + dx, y + dy];
      return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
    });
  });
  const ring = (numbers) => numbers.flatMap((number) => (number < 0 ? [...lines[~number]].reverse() : lines[number]));
  return objects.land.geometries.flatMap(({ arcs: polygons }) => polygons.flat()).map((numbers) => path(ring(numbers), "Z")).join("");
}

function greatCircle(from, to) {
  const [a, b] = [from, to].map(([longitude, latitude]) => {
    const [l, p] = [longitude * RADIANS, latitude * RADIANS];
    return [Math.cos(p) * Math.cos(l), Math.cos(p) * Math.sin(l), Math.sin(p)];
  });
  const angle = Math.acos(Math.min(1, Math.max(-1, a[0] * b[0] + a[1] * b[1] + a[2] * b[2]))) || 1e-9;
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    const [u, v] = [1 - step / STEPS, step / STEPS].map((share) => Math.sin(share * angle) / Math.sin(angle));
    const [x, y, z] = [0, 1, 2].map((axis) => u * a[axis] + v * b[axis]);
    return [Math.atan2(y, x) / RADIANS, Math.atan2(z, Math.hypot(x, y)) / RADIANS];
  });
}

function drawn(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

let outline = null;
async function world() {
  outline ??= land(await (await fetch("assets/map/world.json")).json());
  return outline;
}

export async function smallMap(part, regions, relays, states) {
  const coast = await world();
  redraw(part, [regions.length, relays, states], () => {
    const places = new Map(regions.filter((region) => region.in_graph && region.latitude_deg !== null && region.longitude_deg !== null)
      .map((region) => [region.id, [region.longitude_deg, region.latitude_deg]]));
    const lines = (names, kind) => names.slice(1).map((name, before) => [names[before], name])
      .filter((ends) => ends.every((end) => places.has(end)))
      .map((ends) => drawn("path", { class: `link ${kind}`, d: path(greatCircle(...ends.map((end) => places.get(end)))) }));
    const number = (condition) => states.filter((state) => state.condition === condition).length;
    const clip = drawn("clipPath", { id: "world-edge" });
    clip.append(drawn("path", { d: worldEdge() }));
    const inside = drawn("g", { "clip-path": "url(#world-edge)" });
    inside.append(drawn("path", { class: "sea", d: worldEdge() }), drawn("path", { class: "land", d: coast }),
      ...relays.flatMap((each) => lines([each.src, each.relay, each.dst], "relayed")),
      ...states.flatMap((each) => lines([each.src, each.dst], each.condition)),
      ...[...places.values()].map((place) => {
        const [cx, cy] = pixel(place).split(" ");
        return drawn("circle", { class: "region", cx, cy, r: 2.6 });
      }));
    const svg = drawn("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT.toFixed(0)}`, role: "img",
      "aria-label": `World map: ${places.size} regions, ${relays.length} relayed paths of the table, ${number("down")} links down, ${number("degraded")} degraded`,
    });
    svg.append(clip, inside);
    const key = (kind, text) => element("li", {}, element("span", { class: `line ${kind}`, "aria-hidden": "true" }), text);
    replace(part, element("h2", {}, "Where"), svg,
      element("ul", { class: "key" }, key("relayed", "relayed paths of the table"), number("down") ? key("down", "down") : null,
        number("degraded") ? key("degraded", "degraded") : null, element("li", {}, element("a", { href: "map" }, "The map of a region"))));
  });
}

// What part of the world a map shows, and by which projection: turned to the middle of what is to be
// seen, and fitted to its ends.

import { geoAzimuthalEqualArea, geoDistance, geoEqualEarth, geoInterpolate } from "../vendor/geo.js";

const DEGREES = 180 / Math.PI;
const STEPS = 12; // samples of a great circle
const ENCLOSING_STEPS = 40;
const WIDEST_DEG = 68; // a flat map of more than this around its middle is one of the whole world,
const WIDEST_NARROW_DEG = 110; // which on a phone is too low to read: round, the same fills a square
const NARROWEST_DEG = 9; // ends in one city are seen with what is around them
const [TOP_DEG, BOTTOM_DEG] = [76, -54]; // of the world without its ice
const HOME_DEG = 10; // east: the usual middle of a map of the world
const CUT_STEP_DEG = 10;
const TILTS_DEG = [0, 35];
const POLAR_DEG = 80; // nearer to a pole, a line follows the edge of a flat map
// A window narrower than this has smaller markers, and taller maps.
export const NARROW = 600;

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

// A place as a map of the world has it that is turned to a meridian, and tilted to a latitude.
function turned([longitude, latitude], [middle, tilt_deg]) {
  const [x, y, z] = vector([longitude - middle, latitude]);
  const [along, up] = [Math.cos(tilt_deg / DEGREES), Math.sin(tilt_deg / DEGREES)];
  return place([x * along + z * up, y, z * along - x * up]);
}

// The middle of a map of the world whose edges, where it is cut, are met by the fewest lines: a
// meridian and, where lines pass a pole, a latitude.
function uncut(lines) {
  const meets = (middle) => lines.filter((line) => {
    const shown = line.map((each) => turned(each, middle));
    return shown.some(([longitude, latitude], at) => Math.abs(latitude) > POLAR_DEG || (at > 0 && Math.abs(longitude - shown[at - 1][0]) > 180));
  }).length;
  const middles = TILTS_DEG.flatMap((tilt_deg) => Array.from({ length: 360 / CUT_STEP_DEG }, (_, step) =>
    [HOME_DEG + Math.ceil(step / 2) * CUT_STEP_DEG * (step % 2 ? 1 : -1), tilt_deg]));
  return middles.reduce((best, middle) => {
    const met = best.met && meets(middle); // none is the best there is
    return met < best.met ? { middle, met } : best;
  }, { middle: middles[0], met: meets(middles[0]) }).middle;
}

const points = (coordinates) => ({ type: "MultiPoint", coordinates });

// lines: pairs of places; places: others to be seen.
// Returns { projection, height, isWhole }; isWhole says that the map has edges of its own.
export function frame({ lines, places, width }) {
  const curves = lines.map(greatCircle);
  const seen = curves.flat().concat(lines.length ? [] : places);
  const middle = seen.length ? around(seen) : WORLD;
  const isNarrow = width < NARROW;
  const margin = isNarrow ? 34 : 56;
  if (middle.radius_deg > (isNarrow ? WIDEST_NARROW_DEG : WIDEST_DEG)) {
    const turn = uncut(curves);
    const projection = geoEqualEarth().precision(0.3).fitWidth(width, { type: "Sphere" });
    const latitudes = curves.flat().map((each) => turned(each, turn)[1]);
    const [[, top], [, bottom]] = [Math.min(90, Math.max(TOP_DEG, ...latitudes.map((each) => each + 3))), Math.min(BOTTOM_DEG, ...latitudes)].map((each) => projection([0, each]));
    projection.rotate(turn.map((each) => -each));
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

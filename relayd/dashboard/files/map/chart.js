// The map as a Vega-Lite document: land, arcs, regions.

import { arc, frame, NARROW, spread } from "./places.js";
import { colour } from "../shared/shell.js";

// Colour and shape say the provider; colours are told apart without red and green too.
const SHAPES = { aws: "circle", azure: "square", gcp: "triangle-up" };
const OTHER_SHAPES = ["diamond", "cross", "triangle-down"];
const COLOURS = { aws: "provider-1", azure: "provider-2", gcp: "provider-3" };

// Of lines that carry nothing and the most, in pixels.
export const thickness = (width) => (width < NARROW ? [0.5, 4] : [0.7, 7]);
export const SOURCES = { measured: [1, 0], inferred: [6, 3], baseline: [2, 3] };
export const KINDS = { chosen: [1, 0], direct: [7, 4], "best relay": [2, 3] };

let outline = null;
export function world() {
  outline ??= fetch("assets/map/world.json").then((response) => response.json());
  return outline;
}

export function providersOf(regions) {
  const names = [...new Set(regions.map((region) => region.provider))].sort();
  return {
    names,
    shapes: names.map((name, at) => SHAPES[name] ?? OTHER_SHAPES[at % OTHER_SHAPES.length]),
    variables: names.map((name) => COLOURS[name] ?? "provider-4"),
    colours: names.map((name) => colour(COLOURS[name] ?? "provider-4")),
  };
}

// arcs: [{ src, dst, rate, kind, said }]; kinds: KINDS or SOURCES, by which they are drawn;
// marked: regions with a label.
export function specification({ land, regions, arcs, kinds, kindColours, marked, said, viewName, width }) {
  const { height, projection, marker, apart } = frame(viewName, width);
  const at = spread(regions, apart);
  const names = Object.keys(kinds).filter((name) => arcs.some((each) => each.kind === name));
  // Thin ones are drawn last, so that none is hidden.
  const lines = arcs
    .filter((each) => at.has(each.src) && at.has(each.dst))
    .sort((a, b) => b.rate - a.rate)
    .map((each) => arc(at.get(each.src), at.get(each.dst), each));
  const points = regions
    .filter((region) => at.has(region.id))
    .map((region) => ({
      id: region.id,
      provider: region.provider,
      longitude: at.get(region.id)[0],
      latitude: at.get(region.id)[1],
      said: said(region),
      isMarked: marked.includes(region.id),
    }));
  const { names: providers, shapes, colours } = providersOf(regions);
  const place = {
    longitude: { field: "longitude", type: "quantitative" },
    latitude: { field: "latitude", type: "quantitative" },
  };
  const scaled = (field, domain, range) => ({ field, type: "nominal", scale: { domain, range }, legend: null });
  const labelled = (below) => points.filter((point) => point.isMarked && below.has(point.id));
  const below = crowded(
    points.filter((point) => point.isMarked),
    apart / marker,
  );
  const above = new Set(marked.filter((id) => !below.has(id)));
  const label = (values, dy) =>
    [{ stroke: colour("page"), strokeWidth: 3, strokeOpacity: 0.8 }, {}].map((outlined) => ({
      data: { values },
      mark: { type: "text", dy, fontSize: 13, fontWeight: "bold", fill: colour("text"), clip: true, ...outlined },
      encoding: { ...place, text: { field: "id" } },
    }));
  return {
    width,
    height,
    autosize: { type: "none" },
    padding: 0,
    projection,
    config: { view: { stroke: null } },
    layer: [
      { data: { sphere: true }, mark: { type: "geoshape", fill: colour("sea"), clip: true } },
      {
        data: { values: land, format: { type: "topojson", feature: "land" } },
        mark: { type: "geoshape", fill: colour("land"), stroke: colour("coast"), strokeWidth: 0.5, clip: true },
      },
      {
        data: { values: lines },
        mark: { type: "geoshape", filled: false, clip: true, strokeCap: "butt", strokeJoin: "round", opacity: 0.75 },
        encoding: {
          strokeWidth: {
            field: "properties.rate",
            type: "quantitative",
            scale: { domain: [0, greatest(arcs)], range: thickness(width) },
            legend: null,
          },
          stroke: scaled(
            "properties.kind",
            names,
            names.map((name) => colour(kindColours[name])),
          ),
          strokeDash: scaled(
            "properties.kind",
            names,
            names.map((name) => kinds[name]),
          ),
        },
      },
      // Thin lines are hard to meet: these are as wide as a finger.
      {
        data: { values: lines },
        mark: { type: "geoshape", filled: false, clip: true, stroke: "transparent", strokeWidth: 9 },
        encoding: { tooltip: { field: "properties.said" } },
      },
      {
        data: { values: points },
        mark: {
          type: "point",
          filled: true,
          size: marker * marker * 0.55,
          opacity: 1,
          stroke: colour("page"),
          strokeWidth: 1,
          cursor: "pointer",
          clip: true,
        },
        encoding: {
          ...place,
          tooltip: { field: "said" },
          shape: scaled("provider", providers, shapes),
          fill: scaled("provider", providers, colours),
        },
      },
      {
        data: { values: points.filter((point) => point.isMarked) },
        mark: {
          type: "point",
          size: marker * marker * 2,
          filled: false,
          stroke: colour("text"),
          strokeWidth: 2,
          opacity: 1,
          clip: true,
        },
        encoding: place,
      },
      ...label(labelled(above), -marker - 4),
      ...label(labelled(below), marker + 6),
    ],
  };
}

// Regions whose label would lie on another's: theirs goes below.
function crowded(points, degreesPerPixel) {
  const kept = [];
  const below = new Set();
  for (const point of points) {
    const near = kept.some(
      (other) =>
        Math.abs(other.longitude - point.longitude) < 110 * degreesPerPixel &&
        Math.abs(other.latitude - point.latitude) < 18 * degreesPerPixel,
    );
    if (near) below.add(point.id);
    else kept.push(point);
  }
  return below;
}

export const greatest = (arcs) => Math.max(...arcs.map((each) => each.rate), 1e-9);

// A few round rates up to the greatest, for the legend of thickness.
export function steps(most) {
  const step = 10 ** Math.floor(Math.log10(most));
  const size = most / step < 2 ? step / 2 : most / step < 5 ? step : 2 * step;
  return [1, 2, 3, 4].map((times) => Number((times * size).toPrecision(3))).filter((value) => value <= most);
}

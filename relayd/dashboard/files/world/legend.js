// How lines and markers are drawn, and what that means.

import { drawn, element } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { classText, level, METRICS, scaleOf, shade } from "../shared/metrics.js";
import { NARROW } from "./view.js";

// Kinds of lines by their dashes; those in trouble have a colour of their own.
export const KINDS = {
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

export function markerOf(provider, size) {
  const shape = SHAPES[provider] ?? OTHER;
  return shape === "circle" ? drawn("circle", { r: size })
    : drawn("polygon", { points: shape.split(" ").map((point) => point.split(",").map((value) => (value * size).toFixed(1)).join(",")).join(" ") });
}

export const greatest = (lines) => Math.max(...lines.map((line) => line.thickness), 1e-9);

// From throughput to pixels, between lines that carry nothing and the most.
export function thickness(most, width) {
  const [thin, fat] = width < NARROW ? [0.9, 4] : [1.1, 7];
  return (value) => thin + (fat - thin) * (value / most);
}

// The metrics that lines have, in the order of METRICS.
const isKnown = (value) => value !== undefined && value !== null;
export const offered = (lines) => Object.keys(METRICS).filter((name) => lines.some((line) => isKnown(line.values[name])));

// Classes rest on all lines, so that they stay while some are left out.
export const scaleFor = (metric, { all }, lines) => scaleOf(metric, (all ?? lines).map((line) => [line.values[metric] ?? null]));

// A few round rates up to the greatest.
export function steps(most) {
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

export function legend({ regions, lines, kindTitle, metric, scale, unit = "Gbit/s", width }) {
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

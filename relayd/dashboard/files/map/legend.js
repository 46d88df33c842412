// What lines and markers mean. Its colours follow the theme by themselves.

import { element } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { greatest, providersOf, steps, thickness } from "./chart.js";

const SVG = "http://www.w3.org/2000/svg";
const POINTS = {
  square: "1,1 11,1 11,11 1,11",
  "triangle-up": "6,1 11.5,11 0.5,11",
  "triangle-down": "0.5,1 11.5,1 6,11",
  diamond: "6,0 12,6 6,12 0,6",
  cross: "4,0 8,0 8,4 12,4 12,8 8,8 8,12 4,12 4,8 0,8 0,4 4,4",
};

function drawn(width, shape, attributes, styles) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ width, height: 12, viewBox: `0 0 ${width} 12`, "aria-hidden": "true" }))
    svg.setAttribute(name, value);
  const made = document.createElementNS(SVG, shape);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  Object.assign(made.style, styles);
  svg.append(made);
  return svg;
}

const line = (styles) => drawn(34, "line", { x1: 0, x2: 34, y1: 6, y2: 6 }, styles);

function marker(shape, variable) {
  const styles = { fill: `var(--${variable})` };
  return shape === "circle"
    ? drawn(12, "circle", { cx: 6, cy: 6, r: 5.5 }, styles)
    : drawn(12, "polygon", { points: POINTS[shape] }, styles);
}

const group = (title, entries) =>
  element(
    "dl",
    {},
    element("dt", {}, title),
    entries.map(([picture, text]) => element("dd", {}, picture, text)),
  );

export function legend({ arcs, kinds, kindTitle, kindColours, unit, regions, width }) {
  const names = Object.keys(kinds).filter((name) => arcs.some((each) => each.kind === name));
  const most = greatest(arcs);
  const [thin, fat] = thickness(width);
  const thick = (rate) => thin + (fat - thin) * (rate / most);
  const { names: providers, shapes, variables } = providersOf(regions);
  return element(
    "div",
    { class: "legend" },
    group(
      kindTitle,
      names.map((name) => [
        line({
          stroke: `var(--${kindColours[name]})`,
          strokeWidth: "3px",
          strokeDasharray: kinds[name][1] ? kinds[name].join(" ") : "none",
        }),
        name,
      ]),
    ),
    arcs.length > 0 &&
      group(
        unit,
        steps(most).map((rate) => [line({ stroke: "var(--text)", strokeWidth: `${thick(rate)}px` }), figure(rate)]),
      ),
    group(
      "Provider",
      providers.map((name, at) => [marker(shapes[at], variables[at]), name]),
    ),
  );
}

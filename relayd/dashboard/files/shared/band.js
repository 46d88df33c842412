// An estimate drawn: from low to high as a band, expected as a mark, on a scale from zero.

import { drawn } from "./dom.js";
import { range } from "./format.js";

const HEIGHT = 16;

// most: the end of the scale.
export function band({ low, expected, high }, most, label, { width = 130 } = {}) {
  const at = (value) => (most > 0 ? Math.max(0, Math.min(1, value / most)) * (width - 2) + 1 : 1);
  const svg = drawn("svg", { class: "band", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label });
  svg.append(
    drawn("rect", { class: "track", x: 0, y: 5, width, height: 6, rx: 1 }),
    drawn("rect", { class: "range", x: at(low), y: 3, width: Math.max(1.5, at(high ?? most) - at(low)), height: 10, rx: 1 }),
    drawn("rect", { class: "expected", x: at(expected) - 1, y: 1, width: 2.5, height: 14 }),
  );
  return svg;
}

// The bounds of an estimate in words, above its band; what: the figure's name.
export function bounded({ low, expected, high }, what, shown, { most = high, unit = "", ...more } = {}) {
  const words = range(low, high, shown);
  return [`${words}${unit}`, band({ low, expected, high }, most, `${what}, ${words}${unit}`, more)];
}

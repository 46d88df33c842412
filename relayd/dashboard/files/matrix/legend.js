// What the colours and the hatching of the matrix mean, and how often each occurs.

import { element } from "../shared/dom.js";
import { classText, LEVELS, METRICS, shade } from "../shared/metrics.js";

const SOURCES = {
  measured: "measured", inferred: "inferred from other measurements", baseline: "baseline, not measured",
};
const swatch = (kind) => element("span", { class: `swatch ${kind}`, "aria-hidden": "true" });

export function legend(metric, scale, matrix) {
  const { best, meaning, unit } = METRICS[metric];
  const counts = { measured: 0, inferred: 0, baseline: 0, unknown: 0 };
  matrix.values.forEach((row, src) => row.forEach((value, dst) => {
    if (src === dst) return;
    counts[value === null ? "unknown" : (matrix.sources?.[src][dst] ?? "measured")] += 1;
  }));
  const many = (kind) => element("span", { class: "muted" }, ` ${counts[kind].toLocaleString("en-US")}`);
  const kinds = matrix.sources ? Object.entries(SOURCES).map(([kind, text]) => element("li", {}, swatch(`l5 ${kind}`), text, many(kind))) : [];
  return element("section", { class: "legend", "aria-label": "Legend" },
    element("p", {}, element("strong", {}, meaning), unit ? `, ${unit}` : "", ". ",
      element("span", { class: "muted" }, scale.isEven
        ? "Classes are equally wide from zero, the last is open: like colours are like figures."
        : "Classes widen with the figure.",
        ` The stronger the colour, the ${best}.`)),
    element("ol", { class: "scale" }, Array.from({ length: LEVELS }, (_, at) =>
      element("li", {}, swatch(`l${shade(metric, at)}`), classText(metric, scale.limits, at)))),
    element("ul", { class: "kinds" }, kinds,
      element("li", {}, swatch("unknown"), "unknown", many("unknown")), element("li", {}, swatch("self"), "the region itself")));
}

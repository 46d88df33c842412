// What the colours and the hatching of the matrix mean, and how often each occurs.

import { element } from "../shared/dom.js";
import { classText, LEVELS, METRICS, shade } from "../shared/metrics.js";

const SOURCES = {
  measured: "measured", inferred: "inferred from other measurements", baseline: "baseline, not measured",
};
const swatch = (kind) => element("span", { class: `swatch ${kind}`, "aria-hidden": "true" });

export function legend(scale, { metric, values, sources, isWanted = () => true }) {
  const { best, meaning, unit } = METRICS[metric];
  const counts = { measured: 0, inferred: 0, baseline: 0, unknown: 0 };
  values.forEach((row, src) => row.forEach((value, dst) => {
    if (src !== dst && isWanted(src, dst)) counts[value === null ? "unknown" : (sources?.[src][dst] ?? "measured")] += 1;
  }));
  const kind = (name, text) => element("li", {}, swatch(name === "unknown" ? name : `l5 ${name}`), text,
    element("span", { class: "muted" }, ` ${counts[name].toLocaleString("en-US")}`));
  return element("section", { class: "legend", "aria-label": "Legend" },
    element("p", {}, element("strong", {}, meaning), unit ? `, ${unit}` : "", ". ", element("span", { class: "muted" }, scale.isEven
      ? "Classes are equally wide from zero, the last is open: like colours are like figures."
      : "Classes widen with the figure.", ` The stronger the colour, the ${best}.`)),
    element("ol", { class: "scale" }, Array.from({ length: LEVELS }, (_, at) =>
      element("li", {}, swatch(`l${shade(metric, at)}`), classText(metric, scale.limits, at)))),
    element("ul", { class: "kinds" }, sources && Object.entries(SOURCES).map((each) => kind(...each)),
      kind("unknown", "unknown"), element("li", {}, swatch("self"), "the region itself")));
}

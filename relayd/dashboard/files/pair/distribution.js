// How values of a metric are spread; of a few samples only the values are shown.

import { chart } from "../shared/chart.js";
import { element, replace, table } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { key, small } from "../shared/parts.js";
import { quantile } from "../shared/quantiles.js";

const SHARES = [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1];

export function distribution(section, found, about, link) {
  const one = found.quantiles.length;
  const listed = found.samples - found.compacted;
  const title = element("h3", {}, `Of ${about.name.toLowerCase()}`, small(` n = ${figure(listed)}`));
  if (!one) return replace(section, title, element("p", { class: "muted" }, "No single sample is in this time."));
  const to = (value) => value * about.scale;
  const quantiles = found.quantiles.map(to);
  if (!found.has_shape) {
    return replace(section, title,
      element("p", {}, `With ${one} ${one === 1 ? "sample" : "samples"} there is no distribution to speak of (at least 8 are needed). ${one === 1 ? "The value" : "The values"}: ${quantiles.map(figure).join(", ")} ${about.unit}.`));
  }
  const at = (share) => quantile(quantiles, share);
  const drawing = element("div");
  const half = at(0.25) === at(0.75) ? `At least half of the samples are ${about.shown(at(0.5))}`
    : `Half of the samples lie between ${figure(at(0.25))} and ${about.shown(at(0.75))}`;
  const words = `${half}, nine of ten between ${figure(at(0.05))} and ${about.shown(at(0.95))}; median ${about.shown(at(0.5))}.`;
  const bounds = about.bounds(link);
  const figures = table("", `Quantiles, ${about.unit}`, [["Share"], [about.unit, "number"]],
    SHARES.map((share) => [`${share * 100} %`, figure(at(share))]));
  const bars = found.histogram.map((bar) => [to(bar.low), bar.high > bar.low ? to(bar.high) : to(bar.high) * 1.001 + 1e-3, bar.samples]);
  // Bars follow each other: the last height holds to the last end.
  const values = [[...bars.map(([low]) => low), bars.at(-1)[1]], [...bars, bars.at(-1)].map(([, , samples]) => samples)];
  const [low, high] = [values[0][0], values[0].at(-1)];
  const room = 0.04 * (high - low || high || 1);
  const isBounded = bounds && bounds.high > bounds.low;
  const today = isBounded && { low: Math.max(low - room, bounds.low), high: Math.min(high + room, bounds.high), kind: "today", along: "x" };
  chart(drawing, () => ({
    height: 240, isStill: true, values, series: [{ kind: "steps", color: "chosen", fill: true }],
    x: { title: `${about.name}, ${about.unit}`, range: () => [low - room, high + room] },
    y: { title: "samples", range: (_, least, most) => [0, most * 1.05] },
    rules: [{ x: at(0.5), kind: "middle" }], bands: today && today.high > today.low ? [today] : [],
  }), { title: `Distribution of ${about.name}. ${words}`, table: figures });
  return replace(section, title, element("p", { class: "legend" }, key("middle", "median"), isBounded && key("today", "today's bounds")),
    drawing, element("p", {}, words, found.compacted ? ` ${figure(found.compacted)} older samples, kept as summaries, are not in it.` : ""));
}

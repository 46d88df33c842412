// How values of a metric are spread; of a few samples only the values are shown.

import { chart } from "../shared/chart.js";
import { element, replace } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { quantile } from "../shared/quantiles.js";
import { colour } from "../shared/shell.js";

export const key = (kind, text) => element("span", {}, element("span", { class: `key ${kind}` }), text);

let shape = "histogram";

export function distribution(section, found, about, link) {
  const one = found.quantiles.length;
  const listed = found.samples - found.compacted;
  const title = element("h3", {}, `Distribution of ${about.name.toLowerCase()}`, element("small", { class: "muted" }, ` n = ${figure(listed)}`));
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
  const switches = element("div", { class: "choices", role: "radiogroup", "aria-label": "Shape" }, [["histogram", "Histogram"], ["share", "Cumulative share"]].map(([value, text]) =>
    element("label", { class: "choice" }, element("input", { type: "radio", name: "shape", value, checked: shape === value, on: { change: () => {
      shape = value;
      draw();
    } } }), element("span", {}, text))));
  const table = element("table", {}, element("caption", {}, `Quantiles, ${about.unit}`), element("tbody", {},
    [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1].map((share) => element("tr", {}, element("th", { scope: "row" }, `${share * 100} %`), element("td", { class: "number" }, figure(at(share)))))));
  const x = { type: "quantitative", title: `${about.name}, ${about.unit}`, scale: { zero: false, nice: true }, axis: { tickCount: 6 } };
  const middle = () => ({ data: { values: [{ middle: at(0.5) }] }, mark: { type: "rule", color: colour("relay"), strokeWidth: 2 }, encoding: { x: { ...x, field: "middle" } } });
  const band = () => bounds && bounds.high > bounds.low && { data: { values: [bounds] }, mark: { type: "rect", color: colour("good"), opacity: 0.18 }, encoding: { x: { ...x, field: "low" }, x2: { field: "high" } } };
  const histogram = () => ({
    height: 220,
    layer: [band(), {
      data: { values: found.histogram.map((bar) => ({ low: to(bar.low), high: bar.high > bar.low ? to(bar.high) : to(bar.high) * 1.001 + 1e-3, samples: bar.samples })) },
      mark: { type: "bar", color: colour("chosen"), binSpacing: 1 },
      encoding: { x: { ...x, field: "low", bin: "binned" }, x2: { field: "high" }, y: { field: "samples", type: "quantitative", title: "samples", axis: { tickCount: 5, tickMinStep: 1 } } },
    }, middle()].filter(Boolean),
  });
  const cumulative = () => ({
    height: 220,
    layer: [band(), {
      data: { values: quantiles.map((value, place) => ({ value, share: 100 * place / (quantiles.length - 1) })) },
      mark: { type: "line", color: colour("chosen"), strokeWidth: 2, interpolate: "step-after" },
      encoding: { x: { ...x, field: "value" }, y: { field: "share", type: "quantitative", title: "% of samples up to this" }, order: { field: "share" } },
    }, middle()].filter(Boolean),
  });
  const draw = () => chart(drawing, shape === "histogram" ? histogram : cumulative, { title: `Distribution of ${about.name}. ${words}`, table });
  draw();
  return replace(section, title, switches, element("p", { class: "legend" }, key("middle", "median"), bounds && bounds.high > bounds.low ? key("today", "today's bounds") : null),
    drawing, element("p", {}, words, found.compacted ? ` ${figure(found.compacted)} older samples, kept as summaries, are not in it.` : ""));
}

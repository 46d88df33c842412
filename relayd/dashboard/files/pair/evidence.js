// What each figure was made of: the rule, the other figures that went in, and the samples.

import { element, facts, replace, scrolling, sortable } from "../shared/dom.js";
import { figure, when } from "../shared/format.js";
import { shownAs, sourceTag } from "./facts.js";
import { metricOf } from "./metrics.js";
import { pairLink } from "../shared/pairs.js";

const NAMES = {
  rtt_ms: "Round-trip time", per_flow_mbps: "One flow", aggregate_gbps: "Many flows together", loss_pct: "Loss",
  window_mb: "Receiver's window", egress_gbps: "Sender's egress cap", ingress_gbps: "Receiver's ingress cap",
};
const KINDS = { samples: "from samples", inference: "derived", model: "a model alone", stated: "stated", nothing: "not known" };

// The panel, and what opens the part of a figure.
export function evidencePanel({ evidence }, link) {
  const parts = new Map(evidence.map((each) => [each.quantity, part(each, link, open)]));
  function open(quantity) {
    const wanted = parts.get(quantity);
    if (!wanted) return;
    wanted.open = true;
    wanted.querySelector("summary").focus();
    wanted.scrollIntoView({ block: "nearest" });
  }
  const panel = element("section", { class: "panel wide", id: "evidence" }, element("h3", {}, "Evidence"),
    element("p", { class: "muted" }, "What each figure was made of, down to the samples that counted. Figures are as the snapshot has them: before they are widened for age, and without what is wrong with a link just now."),
    [...parts.values()]);
  return { panel, open };
}

function part(each, link, open) {
  const shown = shownAs[each.quantity];
  const { estimate } = each;
  const series = each.series.length + each.further;
  const counted = each.series.reduce((sum, one) => sum + one.samples.length, 0);
  const from = series > 1 ? `, from ${series} links` : counted ? `, ${counted} ${counted === 1 ? "sample" : "samples"}` : "";
  const value = estimate ? `${shown(estimate.expected)} (${figure(estimate.low)} to ${figure(estimate.high)})` : each.quantity === "loss_pct" ? shown(link.loss_pct) : shown(null);
  const inside = element("div", { class: "inside" });
  const made = element("details", { class: "evidence", dataset: { quantity: each.quantity } },
    element("summary", {}, element("span", { class: "what" }, NAMES[each.quantity] ?? each.quantity), " ", element("span", { class: "value" }, value), " ",
      element("span", { class: "how" }, KINDS[each.kind] ?? each.kind, from)),
    inside);
  // Tables of samples are made when they are wanted.
  made.addEventListener("toggle", () => made.open && !inside.firstChild && replace(inside, body(each, open)));
  return made;
}

function body(each, open) {
  const links = each.rests_on.map((quantity, at) => [at ? ", " : "", element("button", { type: "button", class: "link", on: { click: () => open(quantity) } }, NAMES[quantity])]);
  const { estimate } = each;
  const of = [["Rule", each.rule]];
  if (each.region) of.push(["Of the VM in", each.region]);
  if (estimate) of.push(["In short", [sourceTag(estimate.source), estimate.basis ? ` ${estimate.basis}` : ""]]);
  if (links.length) of.push(["Rests on", links]);
  return [facts(of), seriesOf(each)];
}

function seriesOf(each) {
  if (!each.series.length) return null;
  const read = each.series.filter((one) => one.was_read);
  const further = each.series.length - read.length + each.further;
  const samples = read.flatMap((one) => one.samples);
  const series = element("table", {}, element("caption", {}, `${each.series.length === 1 ? "One series" : `${each.series.length + each.further} series`} of samples`),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Link"), element("th", { scope: "col" }, "Metric"), element("th", { scope: "col", class: "number" }, "Counted"), element("th", { scope: "col" }, "Left out"))),
    element("tbody", {}, read.map((one) => element("tr", {},
      element("td", {}, one.src === one.dst ? one.src : pairLink(one.src, one.dst)),
      element("td", {}, one.metric.endsWith("cap_mbps") ? "cap" : metricOf(one.metric).name),
      element("td", { class: "number" }, one.samples.length),
      element("td", {}, one.left_out.map((left) => `${figure(left.samples)} ${left.reason}`).join("; ") || "none")))));
  return [
    scrolling("Series", series),
    further ? element("p", { class: "muted" }, `And ${further} further links, whose samples are not listed here: ${each.series.filter((one) => !one.was_read).slice(0, 6).map((one) => `${one.src} → ${one.dst}`).join(", ")}${further > 6 ? ", …" : "."}`) : null,
    samples.length ? table(samples, read.length > 1) : null,
  ];
}

function table(samples, severalLinks) {
  const scaled = (row) => row.value * metricOf(row.metric).scale;
  const units = new Set(samples.map((row) => metricOf(row.metric).unit || "Mbit/s"));
  return element("div", { class: "figures" }, sortable("The samples that counted, as the tools gave them; times in UTC", [
    { title: "Measured at", value: (row) => row.measured_at_s, shown: (row) => when(row.measured_at_s) },
    { title: "Value", unit: units.size === 1 ? [...units][0] : "", number: true, value: scaled, shown: (row) => figure(scaled(row)) },
    ...(severalLinks ? [{ title: "Link", value: (row) => `${row.src} → ${row.dst}` }] : []),
    { title: "Tool", value: (row) => row.tool },
    { title: "Connections", number: true, value: (row) => row.connections },
    { title: "Seconds", number: true, value: (row) => row.duration_s, shown: (row) => (row.duration_s === null ? "" : figure(row.duration_s)) },
    { title: "Slow start", value: (row) => (row.warmed_up ? "left out" : row.duration_s === null ? "" : "in it") },
    { title: "Sample", number: true, value: (row) => row.id },
    { title: "Batch", number: true, value: (row) => row.batch_id },
  ], samples, { order: 0, descending: true }));
}

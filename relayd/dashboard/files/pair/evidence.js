// What each figure was made of: the rule, the other figures that went in, and the samples.

import { element, facts, number, replace, sortable, table, words } from "../shared/dom.js";
import { bounds, figure, when } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { age, widePanel } from "../shared/parts.js";
import { QUANTITIES, sourceTag } from "./facts.js";
import { metricOf } from "./metrics.js";

const KINDS = { samples: "from samples", inference: "derived", model: "a model alone", stated: "stated", nothing: "not known" };
const SERIES_NAMED = 6;
const nameOf = (quantity) => QUANTITIES[quantity]?.name ?? quantity;

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
  const panel = widePanel("evidence", "Evidence",
    element("p", { class: "muted" }, "What each figure was made of, down to the samples that counted. Figures are as the snapshot has them: before they are widened for age, and without what is wrong with a link just now."),
    [...parts.values()]);
  return { panel, open };
}

function part(each, link, open) {
  const { shown } = QUANTITIES[each.quantity];
  const { estimate } = each;
  const series = each.series.length + each.further;
  const counted = each.series.reduce((sum, one) => sum + one.samples.length, 0);
  const from = series > 1 ? `, from ${series} links` : counted ? `, ${counted} ${counted === 1 ? "sample" : "samples"}` : "";
  const value = estimate ? bounds(estimate, shown) : shown(each.quantity === "loss_pct" ? link.loss_pct : null);
  const newest = estimate && (estimate.measured_at_s ?? null) !== null && [", newest ", age(estimate)];
  const inside = element("div", { class: "inside" });
  const made = element("details", { class: "evidence", dataset: { quantity: each.quantity } },
    element("summary", {}, element("span", { class: "what" }, nameOf(each.quantity)), " ", element("span", { class: "value" }, value), " ",
      element("span", { class: "how" }, KINDS[each.kind] ?? each.kind, from, newest)),
    inside);
  // Tables of samples are made when they are wanted.
  made.addEventListener("toggle", () => made.open && !inside.firstChild && replace(inside, body(each, open)));
  return made;
}

function body({ rests_on: rests, estimate, region, rule, series, further }, open) {
  const links = rests.map((quantity, at) => [at ? ", " : "",
    element("button", { type: "button", class: "link", on: { click: () => open(quantity) } }, nameOf(quantity))]);
  return [facts([
    ["Rule", rule], region && ["Of the VM in", region],
    estimate && ["In short", [sourceTag(estimate.source), estimate.basis ? ` ${estimate.basis}` : ""]],
    links.length > 0 && ["Rests on", links],
  ].filter(Boolean)), series.length > 0 && seriesOf(series, further)];
}

function seriesOf(series, further) {
  const read = series.filter((one) => one.was_read);
  const unread = series.filter((one) => !one.was_read);
  const more = unread.length + further;
  const samples = read.flatMap((one) => one.samples);
  const named = unread.slice(0, SERIES_NAMED).map((one) => `${one.src} → ${one.dst}`).join(", ");
  const caption = series.length === 1 ? "One series of samples" : `${series.length + further} series of samples`;
  return [
    table("series", caption, [["Link"], ["Metric"], ["Counted", "number"], ["Left out"]], read.map((one) => [
      one.src === one.dst ? one.src : pairLink(one.src, one.dst),
      one.metric.endsWith("cap_mbps") ? "cap" : metricOf(one.metric).name, one.samples.length,
      one.left_out.map((left) => `${figure(left.samples)} ${left.reason}`).join("; ") || "none",
    ])),
    more > 0 && element("p", { class: "muted" }, `And ${more} further links, whose samples are not listed here: ${named}${more > SERIES_NAMED ? ", …" : "."}`),
    samples.length > 0 && samplesOf(samples, read.length > 1),
  ];
}

function samplesOf(samples, severalLinks) {
  const scaled = (row) => row.value * metricOf(row.metric).scale;
  const units = new Set(samples.map((row) => metricOf(row.metric).unit || "Mbit/s"));
  return element("div", { class: "figures" }, sortable("The samples that counted, as the tools gave them; times in UTC", [
    words("Measured at", "measured_at_s", when),
    number("Value", scaled, figure, units.size === 1 ? [...units][0] : ""),
    ...(severalLinks ? [words("Link", (row) => `${row.src} → ${row.dst}`)] : []),
    words("Tool", "tool"),
    number("Connections", "connections"),
    number("Seconds", "duration_s", (time_s) => (time_s === null ? "" : figure(time_s))),
    words("Slow start", (row) => (row.warmed_up ? "left out" : row.duration_s === null ? "" : "in it")),
    number("Sample", "id"),
    number("Batch", "batch_id"),
  ], samples, { order: 0, descending: true }));
}

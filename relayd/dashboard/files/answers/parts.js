// What answers have in common: what binds, what would help, VMs, the cost-time frontier, the basis.

import { band } from "../shared/band.js";
import { element, facts, sortable } from "../shared/dom.js";
import { count, duration, figure, rate, usd } from "../shared/format.js";
import { withCode } from "../shared/parts.js";

export function panel(id, title, ...children) {
  return element("section", { class: "panel", "aria-labelledby": id }, element("h2", { id }, title), children);
}
export const widePanel = (...all) => {
  const made = panel(...all);
  made.classList.add("wide");
  return made;
};

export const vmCount = (vms) => Object.values(vms).reduce((sum, each) => sum + each, 0);
export const vmsAt = (vms) => Object.entries(vms).map(([region, number]) => `${number} at ${region}`).join(", ");
export const range = (low, high, shown) => `${shown(low)} to ${shown(high)}`;

// Throughput of an answer for the line below its verdict, with its bounds as a band.
export function throughputOf({ throughput_gbps: expected, throughput_gbps_low: low, throughput_gbps_high: high }) {
  const bounds = `${range(low, high, rate)} Gbit/s`;
  return ["Throughput", `${rate(expected)} Gbit/s`, [bounds, band({ low, expected, high }, high, `Throughput, ${bounds}`)]];
}

// Figures of the line below a verdict that several answers have.
export function timeOf({ duration_s: expected, duration_s_low: low, duration_s_high: high }) {
  const bounds = range(low, high, duration);
  return ["Time", duration(expected), [bounds, band({ low, expected, high }, high, `Time, ${bounds}`)]];
}
export const costOf = ({ cost_usd: cost }) => ["Cost", usd(cost.total), `${usd(cost.egress)} egress, ${usd(cost.vm)} VMs`];
export const vmsOf = ({ vms }) => ["VMs", count(vmCount(vms)), vmsAt(vms)];

// "Gbit/s per VM" is of one more VM; "s per VM, at the margin" is time saved.
function gain({ unit, gain_per_unit: gained }) {
  const [of, what = "unit"] = unit.split(" per ");
  const [thing, ...more] = what.split(", ");
  return `: one more ${thing} ${of === "s" ? "saves" : "brings"} ${figure(gained)} ${of}${more.map((text) => `, ${text}`).join("")}.`;
}

// What binds may be a link: its two ends with an arrow between them.
const isLink = (place) => place.includes(" -> ");
const placed = (place) => (isLink(place) ? ` ${place}` : ` at ${place}`);

export function bottleneck({ bottlenecks = [] }) {
  return panel("limits", "Where the bottleneck is", bottlenecks.length
    ? element("ul", {}, bottlenecks.map((limit) => element("li", {}, element("strong", {}, limit.constraint, placed(limit.region)), gain(limit))))
    : element("p", { class: "muted" }, "No cap binds: going faster would not pay under this request's objective and limits."));
}

const effect = (each) => (each.cost_usd === 0 ? "free" : `${each.cost_usd < 0 ? "saves " : "+"}${usd(Math.abs(each.cost_usd))}`);

export function advice(answer) {
  const { advice: offered = [], one_more_vm: vms = [] } = answer;
  const others = answer.warnings.filter((text) => !answer.outdated.includes(text));
  const items = [
    ...offered.map((each) => element("li", {}, element("strong", {}, each.action), `: ${each.effect} `, element("span", { class: "tag" }, effect(each)))),
    ...vms.map((each) => element("li", {}, element("strong", {}, "One more VM", isLink(each.region) ? ` at both ends of ${each.region}` : ` at ${each.region}`), `: ends at least ${duration(each.saved_s)} sooner, after ${duration(each.duration_s)}.`)),
  ];
  if (!answer.advice && !items.length && !others.length) return null;
  return panel("advice", "What would help",
    items.length ? element("ul", {}, items) : element("p", { class: "muted" }, "Nothing cheaper than the plan itself."),
    others.length > 0 && [element("h3", {}, "Notes"), element("ul", { class: "notes" }, others.map((text) => element("li", {}, withCode(text))))]);
}

// columns: those of a question's points beside time, cost and VMs.
export function frontierTable(points = [], columns = []) {
  if (points.length < 2) return null;
  return panel("frontier", "Cost and time", sortable("Plans that nothing beats in both", [
    { title: "Time", number: true, value: (point) => point.duration_s, shown: (point) => duration(point.duration_s) },
    { title: "Total", number: true, value: (point) => point.cost_usd.total, shown: (point) => usd(point.cost_usd.total) },
    { title: "VMs", number: true, value: (point) => vmCount(point.vms) }, ...columns,
  ], points));
}

export const basis = ({ plan_id: id, snapshot }) => panel("basis", "What it rests on", facts([
  ["Plan", element("code", {}, id)],
  ["Snapshot", `${snapshot.id} (${snapshot.source}), as of ${snapshot.as_of}`],
]));

// Several options for the same, as columns of a table: [title, { throughput_gbps, duration_s, cost_usd }
// or null, class]. The first is what the others are compared with.
export function sideBySide(options) {
  const known = options.filter(([, option]) => option && option.duration_s !== null);
  const first = known[0]?.[1];
  const rows = [
    known.some(([, option]) => option.throughput_gbps !== undefined) && ["Throughput", (option) => `${rate(option.throughput_gbps)} Gbit/s`],
    ["Time", (option) => duration(option.duration_s)],
    ["Speed, first = 1", (option) => `${(first.duration_s / option.duration_s).toFixed(2)}×`],
    ["Egress fees", (option) => usd(option.cost_usd?.egress)],
    ["VM cost", (option) => usd(option.cost_usd?.vm)],
    ["Total cost", (option) => element("strong", {}, usd(option.cost_usd?.total))],
    known.some(([, option]) => option.relays) && ["Forwarded by", (option) => option.relays?.join(", ") || "–"],
  ].filter(Boolean);
  return panel("compared", "Side by side", element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Side by side" },
    element("table", { class: "compared", role: "table" },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, element("td", { role: "cell" }),
        known.map(([title, , kind]) => element("th", { scope: "col", role: "columnheader", class: `number ${kind}` }, title)))),
      element("tbody", { role: "rowgroup" }, rows.map(([name, shown]) => element("tr", { role: "row" }, element("th", { scope: "row", role: "rowheader" }, name),
        known.map(([, option, kind]) => element("td", { role: "cell", class: `number ${kind}` }, shown(option)))))))));
}

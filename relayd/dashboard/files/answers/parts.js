// What answers have in common: the verdict, what binds, what would help, options side by side, the basis.

import { band, bounded } from "../shared/band.js";
import { breakable, element, facts, number, sortable, table } from "../shared/dom.js";
import { count, duration, figure, ms, range, rate, times, usd } from "../shared/format.js";
import { folded, panel, secondary, withCode } from "../shared/parts.js";

export const vmCount = (vms) => Object.values(vms).reduce((sum, each) => sum + each, 0);
export const vmsAt = (vms) => Object.entries(vms).map(([region, each]) => `${each} at ${region}`).join(", ");
// Figures of an answer with their bounds, which have names of their own: duration_s_low.
const estimateOf = (name) => ({ [name]: expected, [`${name}_low`]: low, [`${name}_high`]: high }) => ({ low, expected, high });
export const ratesOf = estimateOf("throughput_gbps");
export const timesOf = estimateOf("duration_s");

// Figures of the line below a verdict that several answers have: [name, value, what stands below it].
export const throughputOf = (answer) => ["Throughput", `${rate(answer.throughput_gbps)} Gbit/s`,
  bounded(ratesOf(answer), "Throughput", rate, { unit: " Gbit/s" })];
export const timeOf = (answer) => ["Time", duration(answer.duration_s), bounded(timesOf(answer), "Time", duration)];
export const costOf = ({ cost_usd: cost }) => ["Cost", usd(cost.total), `${usd(cost.egress)} egress, ${usd(cost.vm)} VMs`];
export const vmsOf = ({ vms }) => ["VMs", count(vmCount(vms)), vmsAt(vms)];

// The head of every answer: what to do and why, with its figures in a line.
export function verdictPanel(answer, { kind, ends, mark, title, headline }) {
  return element("section", { class: `panel verdict verdict-${kind}`, "aria-labelledby": "verdict" },
    answer.outdated.map((text) => element("p", { class: "outdated", role: "alert" }, withCode(text))),
    element("p", { class: "ends muted" }, ends),
    element("h2", { id: "verdict", class: "badge" }, element("span", { class: "mark", "aria-hidden": "true" }, mark), title),
    element("p", { class: "reason" }, answer.reason),
    element("ul", { class: "headline" }, headline.filter(Boolean).map(([name, value, more]) => element("li", {},
      element("span", { class: "muted" }, name), element("strong", {}, value), element("small", { class: "muted" }, more)))),
    answer.confidence && element("p", { class: "muted" }, answer.confidence));
}

// "Gbit/s per VM" is of one more VM; "s per VM, at the margin" is time saved.
function gain({ unit, gain_per_unit: gained }) {
  const [of, what = "unit"] = unit.split(" per ");
  const [thing, ...more] = what.split(", ");
  return `: one more ${thing} ${of === "s" ? "saves" : "brings"} ${figure(gained)} ${of}${more.map((text) => `, ${text}`).join("")}.`;
}

// What binds may be a link: its two ends with an arrow between them.
const isLink = (place) => place.includes(" -> ");
const listed = (items, none) => (items.length ? element("ul", {}, items.map((each) => element("li", {}, each)))
  : element("p", { class: "muted" }, none));

export const bottleneck = ({ bottlenecks = [] }) => panel("limits", "Where the bottleneck is", listed(
  bottlenecks.map((limit) => [element("strong", {}, limit.constraint, isLink(limit.region) ? " " : " at ", limit.region), gain(limit)]),
  "No cap binds: going faster would not pay under this request's objective and limits."));

const effect = (each) => (each.cost_usd === 0 ? "free" : `${each.cost_usd < 0 ? "saves " : "+"}${usd(Math.abs(each.cost_usd))}`);

export function advice(answer) {
  const { advice: offered = [], one_more_vm: vms = [] } = answer;
  const others = answer.warnings.filter((text) => !answer.outdated.includes(text));
  if (!answer.advice && !vms.length && !others.length) return null;
  return panel("advice", "What would help",
    listed([
      ...offered.map((each) => [element("strong", {}, each.action), `: ${each.effect} `, element("span", { class: "tag" }, effect(each))]),
      ...vms.map((each) => [element("strong", {}, `One more VM at ${isLink(each.region) ? "both ends of " : ""}${each.region}`),
        `: ends at least ${duration(each.saved_s)} sooner, after ${duration(each.duration_s)}.`]),
    ], "Nothing cheaper than the plan itself."),
    others.length > 0 && [element("h3", {}, "Notes"), listed(others.map(withCode))]);
}

// columns: those of a question's points beside time, cost and VMs.
export const frontierTable = (points = [], columns = []) => points.length > 1 && secondary("frontier", "Cost and time",
  sortable("Plans that nothing beats in both", [
    number("Time", "duration_s", duration), number("Total", "cost_usd.total", usd),
    number("VMs", ({ vms }) => vmCount(vms)), ...columns,
  ], points));

// more: further facts; links: a table of what it rests on.
export const basis = ({ plan_id: id, snapshot }, more = [], links = null) => folded("basis", "What it rests on", links, facts([
  ["Plan", element("code", {}, id)],
  ["Snapshot", `${snapshot.id} (${snapshot.source}), as of ${snapshot.as_of}`], ...more,
]));

// Several options for the same, as columns: [title, option or null, class]. What the others are compared
// with comes first; a row that no option knows is left out.
export function sideBySide(options, notes = []) {
  const known = options.filter(([, option]) => (option?.duration_s ?? null) !== null);
  const [[, first]] = known;
  const most = Math.max(...known.map(([, option]) => option.throughput_gbps_high ?? option.throughput_gbps));
  const ratio = (one, other) => (one && other ? times(one / other) : undefined);
  const rows = [
    ["Throughput", (option) => option.throughput_gbps && [`${rate(option.throughput_gbps)} Gbit/s`,
      option.throughput_gbps_low && band(ratesOf(option), most, "Throughput with its bounds")]],
    ["Bounds", (option) => option.throughput_gbps_low && range(option.throughput_gbps_low, option.throughput_gbps_high, rate)],
    ["Time", (option) => duration(option.duration_s)],
    ["Speed, first = 1", (option) => ratio(first.duration_s, option.duration_s)],
    ["Egress fees", (option) => usd(option.cost_usd?.egress)],
    ["VM cost", (option) => usd(option.cost_usd?.vm)],
    ["Total cost", (option) => element("strong", {}, usd(option.cost_usd?.total))],
    ["Cost, first = 1", (option) => ratio(option.cost_usd?.total, first.cost_usd?.total)],
    ["Round trip", (option) => option.rtt_ms && ms(option.rtt_ms)],
    ["Forwarded by", (option) => option.relays?.join(", ")],
    ["Connections", ({ connections: opened }) => (Array.isArray(opened) || Number(opened)) && [opened].flat().map(figure).join(" + ")],
    ["VMs", ({ vms }) => vms && Object.entries(vms).map(([region, each]) => element("div", {}, `${each} at `, breakable(region)))],
  ].map(([name, shown]) => [name, ...known.map(([, option]) => shown(option))]);
  return secondary("compared", "Side by side",
    table("compared", "Against the first", [[""], ...known.map(([title, , kind]) => [title, `number ${kind}`])],
      rows.filter(([, ...cells]) => cells.some(Boolean)).map(([name, ...cells]) => [name, ...cells.map((cell) => cell || "–")])),
    notes.map((note) => element("p", { class: "muted" }, note)));
}
